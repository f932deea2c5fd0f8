#include "kube/exec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "kube/plugin.h"
#include "kube/secret.h"

ALLOC_TYPE(exec_type, "exec");

struct exec {
	struct loop *loop;
	const struct config *config;
	struct plugin_run *run; /* NULL: none is under way */
	struct credential credential;
	unsigned serial;
	bool rejected;      /* by the server; until the next successful run */
	bool failed;        /* the last run did, with failure */
	struct err failure; /* valid when failed */
	struct backoff backoff;
	double not_before;   /* clock_now's scale; no run because of a failure or a refusal begins earlier */
	struct list waiting; /* exec_wait */
	struct loop_job tell;
};

static void append_member(struct buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	buf_append_format(out, ",\"%s\":", key);
	buf_append_json_string(out, value, strlen(value));
}

static void append_cluster(struct buf *out, const struct config *config, const char *ca)
{
	char *data = ca ? secret_encode(ca, strlen(ca)) : NULL;
	buf_append_text(out, "\"cluster\":{\"server\":");
	buf_append_json_string(out, config->server, strlen(config->server));
	append_member(out, "tls-server-name", config->tls_server_name);
	append_member(out, "certificate-authority-data", data);
	append_member(out, "proxy-url", config->proxy_url);
	if (config->insecure)
		buf_append_text(out, ",\"insecure-skip-tls-verify\":true");
	if (config->exec_extension)
		buf_append_format(out, ",\"config\":%s", config->exec_extension);
	buf_append_text(out, "},");
	alloc_free(data);
}

/* What the plugin is told in KUBERNETES_EXEC_INFO. */
static char *make_info(const struct config *config, const char *ca)
{
	struct buf info;
	buf_init(&info, 0);
	buf_append_format(&info, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\",\"spec\":{",
			  config->plugin->api_version);
	if (config->plugin->wants_cluster)
		append_cluster(&info, config, ca);
	buf_append_text(&info, "\"interactive\":false}}");
	return buf_take(&info);
}

static void fail(struct exec *exec, const struct err *err)
{
	exec->failed = true;
	err_set(&exec->failure, "Unauthorized", "%s", err->message);
	exec->failure.retryable = true;
	exec->not_before = clock_now() + backoff_next(&exec->backoff);
}

static void on_run_done(void *data, struct credential *credential, const struct err *err)
{
	struct exec *exec = data;
	exec->run = NULL;
	if (err) {
		fail(exec, err);
	} else {
		credential_fini(&exec->credential);
		exec->credential = *credential;
		*credential = (struct credential){0};
		exec->serial++;
		exec->rejected = exec->failed = false;
	}
	loop_post(exec->loop, &exec->tell);
}

static void start(struct exec *exec, const char *ca)
{
	struct err err;
	char *info = make_info(exec->config, ca);
	exec->run = plugin_start(exec->loop, exec->config->plugin, info, on_run_done, exec, &err);
	secret_free(info);
	if (!exec->run)
		on_run_done(exec, NULL, &err);
}

static void tell(void *data)
{
	struct exec *exec = data;
	const struct err failure = exec->failure;
	bool failed = exec->failed;
	struct list waiting;
	list_init(&waiting);
	list_move(&waiting, &exec->waiting);
	for (struct list *node; (node = list_pop(&waiting));) {
		struct exec_wait *wait = LIST_ENTRY(node, struct exec_wait, node);
		wait->on_ready(wait->data, failed ? &failure : NULL);
	}
}

struct exec *exec_new(struct loop *loop, const struct config *config)
{
	struct exec *exec = alloc_object(&exec_type, sizeof(*exec));
	exec->loop = loop;
	exec->config = config;
	list_init(&exec->waiting);
	loop_job_init(&exec->tell, tell, exec);
	return exec;
}

void exec_free(struct exec *exec)
{
	if (!exec)
		return;
	if (exec->run)
		plugin_cancel(exec->run);
	loop_job_cancel(&exec->tell);
	credential_fini(&exec->credential);
	alloc_object_free(&exec_type, exec);
}

static bool is_fresh(const struct exec *exec)
{
	return exec->serial && !exec->rejected && clock_wall() < exec->credential.expires_at;
}

bool exec_ready(struct exec *exec, const char *ca, struct exec_wait *wait)
{
	if (is_fresh(exec))
		return true;
	list_add_tail(&exec->waiting, &wait->node);
	if (exec->run)
		return false;
	if (exec->failed && clock_now() < exec->not_before)
		loop_post(exec->loop, &exec->tell);
	else
		start(exec, ca);
	return false;
}

bool exec_reject(struct exec *exec)
{
	if (exec->run || exec->rejected)
		return true;
	if (clock_now() < exec->not_before)
		return false;
	exec->rejected = true;
	exec->not_before = clock_now() + backoff_next(&exec->backoff);
	return true;
}

const struct credential *exec_credential(const struct exec *exec)
{
	return &exec->credential;
}

unsigned exec_serial(const struct exec *exec)
{
	return exec->serial;
}
