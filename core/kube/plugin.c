#include "kube/plugin.h"

#include <string.h>

#include "base/alloc.h"
#include "kube/secret.h"

ALLOC_TYPE(plugin_type, "plugin");

#define GROUP "client.authentication.k8s.io/"

static int check_version(const struct kubeconfig_entry *exec, const struct plugin *plugin, struct err *err)
{
	if (!plugin->api_version)
		return kubeconfig_refuse(exec, "apiVersion", "is missing; it is " GROUP "v1 for most plugins", err);
	if (strcmp(plugin->api_version, GROUP "v1") != 0 && strcmp(plugin->api_version, GROUP "v1beta1") != 0)
		return kubeconfig_refuse(exec, "apiVersion",
					 "is neither " GROUP "v1 nor " GROUP "v1beta1; a newer version of the plugin "
					 "may write such an entry",
					 err);
	return 0;
}

/* v1 has no default for it, and neither has kubectl. */
static int check_mode(const struct kubeconfig_entry *exec, const struct plugin *plugin, struct err *err)
{
	char *mode;
	if (kubeconfig_text(exec, "interactiveMode", &mode, err))
		return -1;
	int result = 0;
	if (mode && !strcmp(mode, "Always"))
		result = kubeconfig_refuse(exec, "interactiveMode",
					   "is Always: the plugin wants to ask somebody at a terminal, and there is "
					   "none here; use credentials that need no questions",
					   err);
	else if (mode && strcmp(mode, "IfAvailable") != 0 && strcmp(mode, "Never") != 0)
		result = kubeconfig_refuse(exec, "interactiveMode", "is none of Never, IfAvailable and Always", err);
	else if (!mode && !strcmp(plugin->api_version, GROUP "v1"))
		result = kubeconfig_refuse(exec, "interactiveMode", "is missing; Never or IfAvailable will do", err);
	alloc_free(mode);
	return result;
}

/* A command without a slash is looked for in PATH. */
static int read_command(const struct kubeconfig_entry *exec, char **command, struct err *err)
{
	if (kubeconfig_text(exec, "command", command, err))
		return -1;
	if (!*command)
		return kubeconfig_refuse(exec, "command", "is missing", err);
	if (!strchr(*command, '/'))
		return 0;
	alloc_free(*command);
	return kubeconfig_path(exec, "command", command, err);
}

static int read_argv(const struct kubeconfig_entry *exec, char ***argv, struct err *err)
{
	char *command, **args;
	if (read_command(exec, &command, err))
		return -1;
	if (kubeconfig_texts(exec, "args", &args, err)) {
		alloc_free(command);
		return -1;
	}
	size_t count = 0;
	while (args[count])
		count++;
	*argv = alloc_zero((count + 2) * sizeof(**argv));
	**argv = command;
	memcpy(*argv + 1, args, count * sizeof(*args));
	alloc_free(args);
	return 0;
}

/* {name: …, value: …} to "name=value". */
static char *read_variable(const struct kubeconfig_entry *exec, struct json_slice element, struct err *err)
{
	char *name = json_string_copy(json_get(element, "name")), *value = json_string_copy(json_get(element, "value"));
	char *variable = NULL;
	if (name && *name && !strchr(name, '=') && value)
		variable = alloc_format("%s=%s", name, value);
	else
		kubeconfig_refuse(exec, "env", "holds an element without a name or a value that is text", err);
	alloc_free(name);
	secret_free(value);
	return variable;
}

static int read_environment(const struct kubeconfig_entry *exec, char ***environment, struct err *err)
{
	struct json_slice list = json_get(exec->value, "env");
	enum json_type type = json_type(list);
	if (type != JSON_NONE && type != JSON_NULL && type != JSON_ARRAY)
		return kubeconfig_refuse(exec, "env", "is no list", err);
	size_t count = 0;
	*environment = alloc_zero(sizeof(**environment));
	for (struct json_iter iter = json_iterate(list); json_next(&iter);) {
		char *variable = read_variable(exec, iter.value, err);
		if (!variable)
			return -1;
		*environment = alloc_resize(*environment, (count + 2) * sizeof(**environment));
		(*environment)[count++] = variable;
		(*environment)[count] = NULL;
	}
	return 0;
}

static int read_all(struct plugin *plugin, const struct kubeconfig_entry *exec, struct err *err)
{
	plugin->place = alloc_format("%s: user \"%s\": exec", exec->file->path, exec->name);
	if (kubeconfig_text(exec, "apiVersion", &plugin->api_version, err) || check_version(exec, plugin, err) ||
	    read_argv(exec, &plugin->argv, err) || read_environment(exec, &plugin->environment, err) ||
	    kubeconfig_text(exec, "installHint", &plugin->install_hint, err) ||
	    kubeconfig_flag(exec, "provideClusterInfo", &plugin->wants_cluster, err))
		return -1;
	return check_mode(exec, plugin, err);
}

int plugin_read(struct plugin **plugin, const struct kubeconfig_entry *user, struct err *err)
{
	struct kubeconfig_entry exec;
	int given = kubeconfig_part(user, "exec", &exec, err);
	*plugin = NULL;
	if (given <= 0)
		return given;
	struct plugin *made = alloc_object(&plugin_type, sizeof(*made));
	if (read_all(made, &exec, err)) {
		plugin_free(made);
		return -1;
	}
	*plugin = made;
	return 0;
}

void plugin_free(struct plugin *plugin)
{
	if (!plugin)
		return;
	alloc_free(plugin->place);
	alloc_free(plugin->api_version);
	secret_texts_free(plugin->argv);
	secret_texts_free(plugin->environment);
	alloc_free(plugin->install_hint);
	alloc_object_free(&plugin_type, plugin);
}
