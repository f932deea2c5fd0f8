#include "kube/access.h"

#include <string.h>

#include "base/alloc.h"
#include "kube/request.h"
#include "kube/resource.h"

#define TIMEOUT 60

ALLOC_TYPE(access_type, "access review");

struct access {
	struct request *request;
	access_fn on_answer;
	void *data;
};

static const struct resource reviews = {.group = "authorization.k8s.io",
					.version = "v1",
					.api_version = "authorization.k8s.io/v1",
					.kind = "SelfSubjectAccessReview",
					.plural = "selfsubjectaccessreviews"};

static void append_member(struct buf *out, const char *name, const char *value, size_t length)
{
	if (!length)
		return;
	buf_append_format(out, "%s\"%s\":", out->data[out->length - 1] == '{' ? "" : ",", name);
	buf_append_json_string(out, value, length);
}

static void append_body(const struct access_attributes *attributes, struct buf *out)
{
	size_t plural = strcspn(attributes->resource, "/");
	const char *sub = attributes->resource + plural + (attributes->resource[plural] == '/');
	buf_append_format(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"spec\":{\"resourceAttributes\":{",
			  reviews.api_version, reviews.kind);
	append_member(out, "verb", attributes->verb, strlen(attributes->verb));
	append_member(out, "group", attributes->group, strlen(attributes->group));
	append_member(out, "resource", attributes->resource, plural);
	append_member(out, "subresource", sub, strlen(sub));
	append_member(out, "namespace", attributes->namespace, strlen(attributes->namespace));
	append_member(out, "name", attributes->name, strlen(attributes->name));
	buf_append_text(out, "}}}");
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct access access = *(struct access *)data;
	bool allowed = !err && json_bool(json_get(json_get(body, "status"), "allowed"), false);
	alloc_object_free(&access_type, data);
	access.on_answer(access.data, allowed, err);
}

struct access *access_ask(struct cluster *cluster, const struct access_attributes *attributes, access_fn on_answer,
			  void *data)
{
	static const struct request_events events = {.on_done = on_done};
	struct access *access = alloc_object(&access_type, sizeof(*access));
	struct buf path, body;
	buf_init(&path, 0);
	buf_init(&body, 0);
	access->on_answer = on_answer;
	access->data = data;
	resource_path(&reviews, NULL, NULL, NULL, &path);
	append_body(attributes, &body);
	const struct request_options options = {.method = "POST",
						.path = buf_text(&path),
						.body = body.data,
						.body_length = body.length,
						.timeout = TIMEOUT};
	access->request = request_start(cluster, &options, &events, access);
	buf_fini(&path);
	buf_fini(&body);
	return access;
}

void access_cancel(struct access *access)
{
	request_cancel(access->request);
	alloc_object_free(&access_type, access);
}
