#include "kube/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kube/impersonate.h"
#include "kube/kubeconfig.h"
#include "kube/plugin.h"
#include "kube/secret.h"

ALLOC_TYPE(config_type, "config");

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

static bool starts_with(const char *text, const char *start)
{
	return !strncasecmp(text, start, strlen(start));
}

/* Behind the host, or behind the bracket of an IPv6 one: nothing, a path, or a port from 1 to 65535. */
static bool has_valid_port(const char *host)
{
	const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
	const char *behind = bracket ? bracket + 1 : host + strcspn(host, ":/");
	if (*behind != ':')
		return true;
	size_t digits = strspn(behind + 1, "0123456789");
	char end = behind[1 + digits];
	long port = digits > 0 && digits <= 5 ? strtol(behind + 1, NULL, 10) : 0;
	return port >= 1 && port <= 65535 && (end == '\0' || end == '/');
}

/* "https://host:port/path" in the form that paths can be appended to. A URL with a password would end in messages. */
static int check_server(struct config *config, struct err *err)
{
	char *server = config->server;
	if (!strstr(server, "://")) {
		bool secure = config->ca || config->ca_file || config->cert || config->cert_file || config->insecure;
		config->server = alloc_format("%s://%s", secure ? "https" : "http", server);
		alloc_free(server);
		server = config->server;
	}
	size_t length = strlen(server);
	while (length && server[length - 1] == '/')
		server[--length] = '\0';
	if (strchr(server, '@'))
		return err_set(err, "",
			       "server must not carry a user name or password; put them into the user's entry");
	if (!starts_with(server, "http://") && !starts_with(server, "https://"))
		return err_set(err, "", "server is no http or https URL: %s", server);
	for (const char *at = server; *at; at++)
		if (*at <= ' ' || *at >= 0x7F || strchr("?#\"<>\\^`{|}", *at))
			return err_set(err, "", "server is no plain URL (host, port, path): %s", server);
	const char *host = strstr(server, "://") + 3;
	if (strchr("/:?", *host))
		return err_set(err, "", "server names no host: %s", server);
	if (!has_valid_port(host))
		return err_set(err, "", "server has no valid port (1 to 65535): %s", server);
	return 0;
}

static int check_cluster(struct config *config, struct err *err)
{
	if (!config->server)
		return err_set(err, "", "has no server");
	if (config->ca && config->ca_file)
		return err_set(err, "", "has both certificate-authority and certificate-authority-data; keep one");
	if (config->insecure && (config->ca || config->ca_file))
		return err_set(
		    err, "",
		    "has insecure-skip-tls-verify and a certificate-authority, which contradict each other; keep one");
	const char *proxy = config->proxy_url;
	if (proxy && !starts_with(proxy, "http://") && !starts_with(proxy, "https://") &&
	    !starts_with(proxy, "socks5://"))
		return err_set(err, "", "has a proxy-url that begins with none of http://, https:// and socks5://");
	return check_server(config, err);
}

/* What extensions holds under the name that is for exec plugins. */
static void read_extension(struct config *config, const struct kubeconfig_entry *entry)
{
	for (struct json_iter iter = json_iterate(json_get(entry->value, "extensions")); json_next(&iter);) {
		struct json_slice extension = json_get(iter.value, "extension");
		if (json_string_equals(json_get(iter.value, "name"), EXEC_EXTENSION) && extension.data &&
		    !config->exec_extension)
			config->exec_extension = alloc_text(extension.data, extension.length);
	}
}

static int read_cluster(struct config *config, const struct kubeconfig_entry *entry, struct err *err)
{
	if (kubeconfig_text(entry, "server", &config->server, err) ||
	    kubeconfig_text(entry, "tls-server-name", &config->tls_server_name, err) ||
	    kubeconfig_text(entry, "proxy-url", &config->proxy_url, err) ||
	    kubeconfig_flag(entry, "insecure-skip-tls-verify", &config->insecure, err) ||
	    kubeconfig_path(entry, "certificate-authority", &config->ca_file, err) ||
	    kubeconfig_data(entry, "certificate-authority-data", &config->ca, err))
		return -1;
	read_extension(config, entry);
	config->cluster_place = alloc_format("%s: cluster \"%s\"", entry->file->path, entry->name);
	return check_cluster(config, err) ? err_prefix(err, "%s", config->cluster_place) : 0;
}

static int check_user(const struct config *config, struct err *err)
{
	bool token = config->token || config->token_file, basic = config->username || config->password;
	if (config->cert && config->cert_file)
		return err_set(err, "", "has both client-certificate and client-certificate-data; keep one");
	if (config->key && config->key_file)
		return err_set(err, "", "has both client-key and client-key-data; keep one");
	bool cert = config->cert || config->cert_file, key = config->key || config->key_file;
	if (cert && !key)
		return err_set(err, "", "has a client certificate without client-key or client-key-data");
	if (key && !cert)
		return err_set(err, "", "has a client key without client-certificate or client-certificate-data");
	if (token && basic)
		return err_set(err, "", "has both a token and a username or password; keep one");
	if (config->password && !config->username)
		return err_set(err, "", "has a password without a username");
	return 0;
}

static int read_user(struct config *config, const struct kubeconfig_entry *entry, struct err *err)
{
	if (json_type(json_get(entry->value, "auth-provider")) > JSON_NULL)
		return kubeconfig_refuse(entry, "auth-provider",
					 "is not supported, nor by kubectl since 1.26; use an exec plugin (exec), a "
					 "client certificate, token or tokenFile",
					 err);
	if (kubeconfig_path(entry, "client-certificate", &config->cert_file, err) ||
	    kubeconfig_data(entry, "client-certificate-data", &config->cert, err) ||
	    kubeconfig_path(entry, "client-key", &config->key_file, err) ||
	    kubeconfig_data(entry, "client-key-data", &config->key, err) ||
	    kubeconfig_text(entry, "token", &config->token, err) ||
	    kubeconfig_path(entry, "tokenFile", &config->token_file, err) ||
	    kubeconfig_text(entry, "username", &config->username, err) ||
	    kubeconfig_text(entry, "password", &config->password, err) ||
	    impersonate_read(entry, &config->impersonation, err) || plugin_read(&config->plugin, entry, err))
		return -1;
	config->user_place = alloc_format("%s: user \"%s\"", entry->file->path, entry->name);
	return check_user(config, err) ? err_prefix(err, "%s", config->user_place) : 0;
}

static int no_such(const struct kubeconfig *files, const char *kind, const char *name, struct err *err)
{
	struct buf known;
	buf_init(&known, 0);
	kubeconfig_names(files, kind, &known);
	err_set(err, "", "%s has no %s \"%s\"; it has %s", files->source, kind, name,
		known.length ? known.data : "none");
	buf_fini(&known);
	return -1;
}

static int no_current_context(const struct kubeconfig *files, struct err *err)
{
	struct buf known;
	buf_init(&known, 0);
	kubeconfig_names(files, "context", &known);
	if (known.length)
		err_set(err, "", "%s has no current-context; give --context NAME, one of %s", files->source,
			known.data);
	else
		err_set(err, "", "%s has no contexts; give --kubeconfig FILE with one", files->source);
	buf_fini(&known);
	return -1;
}

/* The cluster or user that a context names: 1, 0 where it names none, -1 with err. */
static int follow(const struct kubeconfig *files, const struct kubeconfig_entry *context, const char *kind,
		  int (*read)(struct config *, const struct kubeconfig_entry *, struct err *), struct config *config,
		  struct err *err)
{
	char *name;
	struct kubeconfig_entry entry;
	int result = kubeconfig_text(context, kind, &name, err);
	if (!result && name) {
		if (!kubeconfig_find(files, kind, name, &entry)) {
			no_such(files, kind, name, err);
			result = err_prefix(err, "context \"%s\"", context->name);
		} else {
			result = read(config, &entry, err) ? -1 : 1;
		}
	}
	alloc_free(name);
	return result;
}

static int read_context(struct config *config, const struct kubeconfig *files, struct err *err)
{
	struct kubeconfig_entry context;
	if (!kubeconfig_find(files, "context", config->context, &context))
		return no_such(files, "context", config->context, err);
	int found = follow(files, &context, "cluster", read_cluster, config, err);
	if (found < 0)
		return -1;
	if (!found)
		return err_set(err, "", "%s: context \"%s\" names no cluster", context.file->path, context.name);
	if (follow(files, &context, "user", read_user, config, err) < 0)
		return -1;
	return kubeconfig_text(&context, "namespace", &config->own_namespace, err);
}

static int read_files(struct config *config, const struct kubeconfig *files, const char *context, struct err *err)
{
	config->source = alloc_string(files->source);
	config->context = context ? alloc_string(context) : kubeconfig_current(files);
	if (!config->context)
		return no_current_context(files, err);
	return read_context(config, files, err);
}

/* 1 when at least one file of the list is there and holds what is needed, 0 when none is there, -1 with err. */
static int try_files(struct config *config, const char *paths, const char *context, struct err *err)
{
	struct kubeconfig files;
	int result = kubeconfig_read(&files, paths, err);
	if (!result && files.count)
		result = read_files(config, &files, context, err) ? -1 : 1;
	kubeconfig_fini(&files);
	return result;
}

static const char *service_account_folder(void)
{
	const char *folder = getenv("PERILUNE_SERVICEACCOUNT_DIR");
	return folder && *folder ? folder : SERVICE_ACCOUNT;
}

static const char *given_environment(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* The pod's own namespace; a pod may be without the file. */
static void read_namespace(struct config *config, const char *folder)
{
	char *path = alloc_format("%s/namespace", folder), *text = secret_read(path, NULL, NULL);
	alloc_free(path);
	if (!text)
		return;
	size_t length = strcspn(text, " \t\r\n");
	if (length)
		config->own_namespace = alloc_text(text, length);
	alloc_free(text);
}

/* As try_files. A pod without a mounted token is no place to find credentials: 0. */
static int try_in_cluster(struct config *config, struct err *err)
{
	const char *host = given_environment("KUBERNETES_SERVICE_HOST"),
		   *port = given_environment("KUBERNETES_SERVICE_PORT");
	const char *folder = service_account_folder();
	if (!host || !port)
		return 0;
	config->token_file = alloc_format("%s/token", folder);
	if (access(config->token_file, F_OK)) {
		alloc_free(config->token_file);
		config->token_file = NULL;
		return 0;
	}
	config->source = alloc_string("in-cluster");
	config->cluster_place = alloc_string(config->source);
	config->user_place = alloc_string(config->source);
	config->in_cluster = true;
	config->ca_file = alloc_format("%s/ca.crt", folder);
	config->server = alloc_format(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	read_namespace(config, folder);
	if (check_server(config, err))
		return err_prefix(err, "KUBERNETES_SERVICE_HOST and _PORT");
	return 1;
}

static char *home_path(void)
{
	const char *home = given_environment("HOME");
	if (!home) {
		const struct passwd *user = getpwuid(getuid());
		home = user && user->pw_dir ? user->pw_dir : "/";
	}
	return alloc_format("%s/.kube/config", home);
}

/* home NULL: not looked at. */
static int nothing_found(const char *home, bool named_context, struct err *err)
{
	const char *pod = "this is no pod";
	if (named_context)
		pod = "a pod has no contexts";
	else if (given_environment("KUBERNETES_SERVICE_HOST"))
		pod = "there is no token";
	if (!home)
		return err_set(err, "",
			       "no kubeconfig found: $KUBECONFIG is set and names no file, and %s is not used (%s); "
			       "correct $KUBECONFIG, unset it for ~/.kube/config, or give --kubeconfig FILE",
			       service_account_folder(), pod);
	return err_set(
	    err, "",
	    "no kubeconfig found: looked at $KUBECONFIG (not set), %s (%s) and %s (not there); give --kubeconfig FILE, "
	    "or --sandbox to try things out without a cluster",
	    service_account_folder(), pod, home);
}

/* Whoever names a context means a kubeconfig, so the pod's account is left out then. home NULL: as above. */
static int try_defaults(struct config *config, const char *home, const char *context, struct err *err)
{
	int result = context ? 0 : try_in_cluster(config, err);
	if (!result && home)
		result = try_files(config, home, context, err);
	if (!result)
		nothing_found(home, context != NULL, err);
	return result;
}

static int load(struct config *config, const struct config_options *options, struct err *err)
{
	const char *environment = given_environment("KUBECONFIG");
	const char *context = options->context && *options->context ? options->context : NULL;
	int result;
	if (options->namespace && *options->namespace)
		config->namespace = alloc_string(options->namespace);
	if (options->kubeconfig && *options->kubeconfig) {
		result = try_files(config, options->kubeconfig, context, err);
		if (!result)
			err_set(err, "", "no kubeconfig at %s; give --kubeconfig a file that exists",
				options->kubeconfig);
	} else if (environment && environment[strspn(environment, ":")]) {
		result = try_files(config, environment, context, err);
		if (!result)
			err_set(err, "",
				"no kubeconfig at %s, which $KUBECONFIG names; correct it or give --kubeconfig FILE",
				environment);
	} else {
		/* Colons alone are a list of no files, and kubectl then looks for none at home either. */
		char *home = environment ? NULL : home_path();
		result = try_defaults(config, home, context, err);
		alloc_free(home);
	}
	return result == 1 ? 0 : -1;
}

struct config *config_load(const struct config_options *options, struct err *err)
{
	struct config *config = alloc_object(&config_type, sizeof(*config));
	if (load(config, options, err)) {
		config_free(config);
		return NULL;
	}
	if (!config->own_namespace)
		config->own_namespace = alloc_string("default");
	if (!config->namespace)
		config->namespace = alloc_string(config->own_namespace);
	return config;
}

struct config *config_none(void)
{
	struct config *config = alloc_object(&config_type, sizeof(*config));
	config->source = alloc_string("none");
	config->server = alloc_string("https://localhost");
	config->namespace = alloc_string("default");
	config->own_namespace = alloc_string("default");
	return config;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	char *const plain[] = {config->source,   config->cluster_place, config->user_place,    config->context,
			       config->server,   config->namespace,     config->own_namespace, config->tls_server_name,
			       config->ca,       config->ca_file,       config->cert,          config->cert_file,
			       config->key_file, config->token_file};
	char *const secret[] = {config->key,      config->token,     config->username,
				config->password, config->proxy_url, config->exec_extension};
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		alloc_free(plain[i]);
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		secret_free(secret[i]);
	plugin_free(config->plugin);
	secret_texts_free(config->impersonation);
	alloc_object_free(&config_type, config);
}
