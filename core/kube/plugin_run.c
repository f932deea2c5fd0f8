#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/plugin.h"
#include "kube/secret.h"

ALLOC_TYPE(run_type, "plugin_run");

#define TIME_LIMIT 30.0                /* seconds; sign-in programs in scripting languages take some */
#define OUTPUT_LIMIT ((size_t)1 << 20) /* a token and a certificate are some kilobytes */
#define ERRORS_LIMIT ((size_t)400)     /* of stderr's end, in messages */
#define INFO "KUBERNETES_EXEC_INFO"

struct plugin_run {
	const struct plugin *plugin;
	struct child *child;
	plugin_fn on_done;
	void *data;
	double started_at;
};

/* The first "NAME=" of texts is variable's. */
static bool is_set(char *const *texts, const char *variable)
{
	size_t length = strcspn(variable, "=") + 1;
	for (; *texts; texts++)
		if (!strncmp(*texts, variable, length))
			return true;
	return false;
}

static size_t count_texts(char *const *texts)
{
	size_t count = 0;
	while (texts[count])
		count++;
	return count;
}

/* This process's environment, the plugin's on top, the info on top of both. The array is the caller's, the texts are
 * borrowed. */
static const char **make_environment(const struct plugin *plugin, const char *info)
{
	size_t count = count_texts(environ) + count_texts(plugin->environment);
	const char **environment = alloc_zero((count + 2) * sizeof(*environment)), **next = environment;
	for (char **text = environ; *text; text++)
		if (!is_set(plugin->environment, *text) && strncmp(*text, INFO "=", sizeof(INFO)) != 0)
			*next++ = *text;
	for (char **text = plugin->environment; *text; text++)
		if (strncmp(*text, INFO "=", sizeof(INFO)) != 0 && !is_set(text + 1, *text))
			*next++ = *text;
	*next = info;
	return environment;
}

static int explain_start(const struct plugin *plugin, int cause, struct err *err)
{
	const char *command = plugin->argv[0], *hint = plugin->install_hint;
	if (cause != ENOENT)
		return err_prefix(err, "%s", plugin->place);
	return err_set(err, "", "%s: there is no command %s%s%s%s", plugin->place, command,
		       strchr(command, '/') ? "" : " in $PATH", hint ? ": " : "", hint ? hint : "");
}

/* The end of stderr without the space around it, behind a colon; nothing where it is empty. */
static char *quote_errors(const struct buf *errors)
{
	const char *text = buf_text(errors), *end = text + errors->length;
	while (text < end && strchr(" \t\r\n", *text))
		text++;
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	return alloc_format("%s%.*s", text < end ? ": " : "", (int)(end - text), text);
}

static int explain_end(const struct plugin *plugin, const struct child_result *result, struct err *err)
{
	const char *place = plugin->place, *command = plugin->argv[0];
	char *errors = quote_errors(result->errors);
	switch (result->end) {
	case CHILD_EXITED:
		err_set(err, "", "%s: %s ended with exit code %d%s", place, command, result->code, errors);
		break;
	case CHILD_SIGNALED:
		err_set(err, "", "%s: %s was ended by signal %d%s", place, command, result->code, errors);
		break;
	case CHILD_TIMEOUT:
		err_set(err, "", "%s: %s was killed, as it had not ended after %g s%s", place, command, TIME_LIMIT,
			errors);
		break;
	case CHILD_TOO_LARGE:
		err_set(err, "", "%s: %s was killed, as it printed more than %zu KiB", place, command,
			OUTPUT_LIMIT >> 10);
		break;
	}
	alloc_free(errors);
	return -1;
}

static int read_result(const struct plugin *plugin, const struct child_result *result, struct credential *credential,
		       struct err *err)
{
	if (result->end != CHILD_EXITED || result->code != 0)
		return explain_end(plugin, result, err);
	if (credential_read(credential, buf_text(result->output), result->output->length, plugin->api_version, err))
		return err_prefix(err, "%s: what %s printed is no credential", plugin->place, plugin->argv[0]);
	if (clock_wall() < credential->expires_at)
		return 0;
	credential_fini(credential);
	return err_set(err, "", "%s: the credential of %s has expired already; check the clock of this machine",
		       plugin->place, plugin->argv[0]);
}

static void run_free(struct plugin_run *run)
{
	alloc_object_free(&run_type, run);
}

static void on_child_done(void *data, const struct child_result *result)
{
	struct plugin_run *run = data;
	struct plugin_run ended = *run;
	struct credential credential = {0};
	struct err err;
	int failed = read_result(run->plugin, result, &credential, &err);
	log_debug(LOG_FIELDS({"error", failed ? err.message : NULL}), "exec plugin %s: %s, %.0f ms",
		  run->plugin->argv[0], failed ? "failed" : "done", (clock_now() - run->started_at) * 1000);
	run_free(run);
	ended.on_done(ended.data, failed ? NULL : &credential, failed ? &err : NULL);
	credential_fini(&credential);
}

struct plugin_run *plugin_start(struct loop *loop, const struct plugin *plugin, const char *info, plugin_fn on_done,
				void *data, struct err *err)
{
	char *variable = alloc_format(INFO "=%s", info);
	const char **environment = make_environment(plugin, variable);
	struct plugin_run *run = alloc_object(&run_type, sizeof(*run));
	*run = (struct plugin_run){.plugin = plugin, .on_done = on_done, .data = data, .started_at = clock_now()};
	const struct child_options options = {
	    .argv = (const char *const *)plugin->argv,
	    .environment = environment,
	    .output_limit = OUTPUT_LIMIT,
	    .errors_limit = ERRORS_LIMIT,
	    .timeout = TIME_LIMIT,
	};
	run->child = child_start(loop, &options, on_child_done, run, err);
	int cause = errno;
	alloc_free(environment);
	secret_free(variable);
	if (run->child)
		return run;
	explain_start(plugin, cause, err);
	run_free(run);
	return NULL;
}

void plugin_cancel(struct plugin_run *run)
{
	child_cancel(run->child);
	run_free(run);
}
