/* Whether the server's history reaches the version that a watch goes on from. One whose etcd was emptied or restored
 * answers a WATCH from a version that is ahead of its own with success, and then with silence until it gets there; a
 * LIST at such a version it refuses, 504 with the cause ResourceVersionTooLarge (both seen on Kubernetes 1.36). So
 * where a watch goes on after it was cut off, one object is listed at its version. */
#include "base/log.h"
#include "cache/reflector_private.h"

#define TIMEOUT 30.0
#define LIMIT ((size_t)4 << 20) /* of one object; a larger answer says nothing either */

static void judge(struct reflector *reflector, const struct err *err, struct json_slice body)
{
	const struct resource *resource = reflector->options.resource;
	if (!err || !reflector_version_is_too_large(err, body))
		return;
	log_warn(
	    LOG_FIELDS({"namespace", reflector->options.namespace}),
	    "the server's history of %s/%s ends before what was seen of it, so it began anew or was restored: all is "
	    "listed again",
	    resource->api_version, resource->kind);
	reflector_move(reflector, MOVE_LIST_TRUTH, err);
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct reflector *reflector = data;
	reflector->probe = NULL;
	judge(reflector, err, body);
}

/* The server asks to wait for the version, and would do so for ever. */
static void on_wait(void *data, const struct err *err, double seconds)
{
	(void)seconds;
	judge(data, err, (struct json_slice){NULL, 0});
}

void reflector_probe(struct reflector *reflector)
{
	static const struct request_events events = {.on_wait = on_wait, .on_done = on_done};
	struct buf path, query;
	buf_init(&path, 0);
	buf_init(&query, 0);
	resource_path(reflector->options.resource, reflector->options.namespace, NULL, NULL, &path);
	buf_append_text(&query, "limit=1");
	request_query_add(&query, "resourceVersion", reflector->version);
	struct request_options options = {
	    .method = "GET", .path = buf_text(&path), .query = buf_text(&query), .timeout = TIMEOUT, .limit = LIMIT};
	reflector_end_probe(reflector);
	reflector->probe = request_start(reflector->options.cluster, &options, &events, reflector);
	buf_fini(&path);
	buf_fini(&query);
}

void reflector_end_probe(struct reflector *reflector)
{
	if (reflector->probe)
		request_cancel(reflector->probe);
	reflector->probe = NULL;
}
