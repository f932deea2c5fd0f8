/* kube_units: the parts of core/kube that need no server, on orders from stdin, one a line; each is answered by JSON
 * lines, the last of which is an event "ok".
 *
 * An order is a verb and key=value fields, parted by tabs; a key that ends in "_hex" carries bytes in hex.
 *   config   kubeconfig= context= namespace=     event config, or err
 *   credential   bytes= api_version=             event credential, or err
 *   frame    bytes= sizes=3,5 limit=             the bytes in chunks of these sizes (the last one again and again):
 * events frame, then framed answer   status= body= retry_after= write=1  event err: what such an answer means failure
 * failure=N message= sent=1 write=1   the same for no answer object   body=                               the same for
 * a Status by itself split    api_version=                        event split, or err path     group= version= plural=
 * namespace= name= subresource=   (absent: NULL) event path query    name= value= ...                    event query:
 * all of them appended in turn */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kube/config.h"
#include "kube/credential.h"
#include "kube/frame.h"
#include "kube/plugin.h"
#include "kube/request.h"
#include "kube/resource.h"
#include "kube/status.h"

#define MAX_FIELDS 32

struct field {
	char *key, *value;
	size_t length;
};

static struct field fields[MAX_FIELDS];
static int count;

static const struct field *find(const char *key)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(fields[i].key, key))
			return &fields[i];
	return NULL;
}

static const char *text(const char *key)
{
	const struct field *field = find(key);
	return field ? field->value : NULL;
}

static double number(const char *key, double fallback)
{
	const char *value = text(key);
	return value ? atof(value) : fallback;
}

static void print_string(const char *bytes, size_t length)
{
	struct buf out;
	buf_init(&out, 0);
	buf_append_json_string(&out, bytes, length);
	fputs(out.data, stdout);
	buf_fini(&out);
}

static void print_member(const char *key, const char *value)
{
	if (!value)
		return;
	printf(",\"%s\":", key);
	print_string(value, strlen(value));
}

static void print_texts(const char *key, char *const *texts)
{
	if (!texts)
		return;
	printf(",\"%s\":[", key);
	for (char *const *next = texts; *next; next++) {
		fputs(next == texts ? "" : ",", stdout);
		print_string(*next, strlen(*next));
	}
	putchar(']');
}

static void print_slice(const char *key, struct json_slice value)
{
	if (!value.data)
		return;
	printf(",\"%s\":", key);
	print_string(value.data, value.length);
}

static void print_err_members(const struct err *err)
{
	print_member("message", err->message);
	print_member("reason", err->reason);
	printf(",\"code\":%d,\"retryable\":%s,\"outcome_unknown\":%s", err->code, err->retryable ? "true" : "false",
	       err->outcome_unknown ? "true" : "false");
	if (err->retry_after >= 0)
		printf(",\"retry_after\":%g", err->retry_after);
}

static void print_err(const struct err *err)
{
	printf("{\"event\":\"err\"");
	print_err_members(err);
	puts("}");
}

static void do_config(void)
{
	struct err err;
	struct config *config =
	    config_load(&(struct config_options){text("kubeconfig"), text("context"), text("namespace")}, &err);
	if (!config) {
		print_err(&err);
		return;
	}
	printf("{\"event\":\"config\",\"in_cluster\":%s,\"insecure\":%s", config->in_cluster ? "true" : "false",
	       config->insecure ? "true" : "false");
	print_member("source", config->source);
	print_member("context", config->context);
	print_member("server", config->server);
	print_member("namespace", config->namespace);
	print_member("tls_server_name", config->tls_server_name);
	print_member("proxy_url", config->proxy_url);
	print_member("ca", config->ca);
	print_member("ca_file", config->ca_file);
	print_member("cert", config->cert);
	print_member("key", config->key);
	print_member("cert_file", config->cert_file);
	print_member("key_file", config->key_file);
	print_member("token", config->token);
	print_member("token_file", config->token_file);
	print_member("username", config->username);
	print_member("password", config->password);
	print_texts("impersonation", config->impersonation);
	if (config->plugin) {
		print_texts("argv", config->plugin->argv);
		print_texts("environment", config->plugin->environment);
	}
	puts("}");
	config_free(config);
}

static void do_credential(void)
{
	const struct field *bytes = find("bytes");
	struct credential credential;
	struct err err;
	/* An allocation of its own, so that a read behind its end is seen. */
	char *copy = alloc_copy(bytes->value, bytes->length);
	int result = credential_read(&credential, copy, bytes->length, text("api_version"), &err);
	alloc_free(copy);
	if (result) {
		print_err(&err);
		return;
	}
	printf("{\"event\":\"credential\"");
	print_member("token", credential.token);
	print_member("cert", credential.cert);
	print_member("key", credential.key);
	if (isfinite(credential.expires_at))
		printf(",\"expires_at\":%.3f", credential.expires_at);
	puts("}");
	credential_fini(&credential);
}

static int on_frame(void *data, const struct frame_event *event, struct err *err)
{
	static const char *const names[] = {"added", "modified", "deleted", "bookmark", "error", "unknown"};
	(void)data, (void)err;
	printf("{\"event\":\"frame\"");
	print_member("type", names[event->type]);
	print_slice("type_text", event->type_text);
	print_slice("object", event->object.bytes);
	puts("}");
	return 0;
}

/* Each chunk is an allocation of its own, so that a read behind its end is seen. */
static int feed(struct frame *frame, const char *bytes, size_t length, struct err *err)
{
	char *chunk = alloc_copy(bytes, length);
	int result = frame_feed(frame, chunk, length, err);
	alloc_free(chunk);
	return result;
}

static void do_frame(void)
{
	const struct field *bytes = find("bytes");
	const char *sizes = text("sizes");
	struct frame *frame = frame_new((size_t)number("limit", 0), on_frame, NULL);
	struct err err;
	size_t at = 0, size = bytes->length;
	int result = 0;
	while (!result && at < bytes->length) {
		if (sizes && *sizes) {
			size = strtoul(sizes, (char **)&sizes, 10);
			sizes += *sizes == ',';
		}
		size_t left = bytes->length - at, length = size && size < left ? size : left;
		result = feed(frame, bytes->value + at, length, &err);
		at += length;
	}
	if (!result)
		result = frame_finish(frame, &err);
	frame_free(frame);
	if (result)
		print_err(&err);
	else
		puts("{\"event\":\"framed\"}");
}

static void print_meaning(const struct err *err, const struct field *body)
{
	struct json_slice status = {body ? body->value : NULL, body ? body->length : 0};
	printf("{\"event\":\"err\"");
	print_err_members(err);
	if (status.data && !json_validate(status.data, status.length, NULL)) {
		print_slice("causes", status_causes(status));
		printf(",\"too_large_version\":%s", status_is_too_large_version(status) ? "true" : "false");
	}
	puts("}");
}

static void do_answer(void)
{
	const struct field *body = find("body");
	struct buf buf;
	struct err err;
	buf_init(&buf, 0);
	if (body)
		buf_append(&buf, body->value, body->length);
	struct http_result result = {
	    .head = {.status = (int)number("status", 0), .retry_after = number("retry_after", -1)}, .body = &buf};
	status_of_result(&result, number("write", 0) != 0, &err);
	print_meaning(&err, body);
	buf_fini(&buf);
}

static void do_failure(void)
{
	struct err err;
	struct http_result result = {.failure = (enum http_failure)number("failure", 0),
				     .head = {.status = (int)number("status", 0), .retry_after = -1},
				     .message = text("message"),
				     .sent = number("sent", 0) != 0};
	status_of_result(&result, number("write", 0) != 0, &err);
	print_meaning(&err, NULL);
}

static void do_object(void)
{
	const struct field *body = find("body");
	struct err err;
	status_of_object((struct json_slice){body->value, body->length}, &err);
	print_meaning(&err, body);
}

static void do_split(void)
{
	char group[254], version[64];
	struct err err;
	if (resource_split(text("api_version"), group, version, &err)) {
		print_err(&err);
		return;
	}
	printf("{\"event\":\"split\"");
	print_member("group", group);
	print_member("version", version);
	puts("}");
}

static void do_path(void)
{
	struct resource resource = {
	    .group = (char *)text("group"), .version = (char *)text("version"), .plural = (char *)text("plural")};
	struct buf path, name;
	buf_init(&path, 0);
	buf_init(&name, 0);
	resource_path(&resource, text("namespace"), text("name"), text("subresource"), &path);
	resource_name(&resource, &name);
	printf("{\"event\":\"path\"");
	print_member("path", path.data);
	print_member("name", name.data);
	puts("}");
	buf_fini(&path);
	buf_fini(&name);
}

static void do_query(void)
{
	struct buf query;
	buf_init(&query, 0);
	for (int i = 0; i + 1 < count; i += 2)
		request_query_add(&query, fields[i].value, fields[i + 1].value);
	printf("{\"event\":\"query\"");
	print_member("query", buf_text(&query));
	puts("}");
	buf_fini(&query);
}

static const struct {
	const char *verb;
	void (*run)(void);
} verbs[] = {
    {"config", do_config},   {"credential", do_credential}, {"frame", do_frame}, {"answer", do_answer},
    {"failure", do_failure}, {"object", do_object},         {"split", do_split}, {"path", do_path},
    {"query", do_query},
};

static size_t decode_hex(char *value)
{
	size_t length = 0;
	for (const char *at = value; at[0] && at[1]; at += 2)
		value[length++] = (char)strtoul((char[]){at[0], at[1], '\0'}, NULL, 16);
	value[length] = '\0';
	return length;
}

static void add_field(char *word)
{
	struct field field = {.key = strsep(&word, "=")};
	size_t length = strlen(field.key);
	field.value = word ? word : field.key + length;
	field.length = strlen(field.value);
	if (length > 4 && !strcmp(field.key + length - 4, "_hex")) {
		field.key[length - 4] = '\0';
		field.length = decode_hex(field.value);
	}
	if (count < MAX_FIELDS)
		fields[count++] = field;
}

static void carry_out(char *order)
{
	const char *verb = strsep(&order, "\t");
	count = 0;
	for (char *word; (word = strsep(&order, "\t"));)
		add_field(word);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].verb, verb))
			verbs[i].run();
	puts("{\"event\":\"ok\"}");
	fflush(stdout);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
		line[length - 1] = '\0';
		carry_out(line);
	}
	free(line);
	return alloc_live(stderr) ? 1 : 0;
}
