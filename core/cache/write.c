#include "cache/write.h"

#include <string.h>

#include "base/alloc.h"
#include "kube/status.h"

static bool is_method(const struct write *write, const char *method)
{
	return !strcmp(write->method, method);
}

static bool is_write(const struct write *write)
{
	return is_method(write, "POST") || is_method(write, "PUT") || is_method(write, "PATCH") ||
	       is_method(write, "DELETE");
}

static bool is_of_kind(const struct json_meta *meta, const struct resource *resource)
{
	return json_string_equals(meta->api_version, resource->api_version) &&
	       json_string_equals(meta->kind, resource->kind);
}

static bool has_elements(struct json_slice array)
{
	struct json_iter iter = json_iterate(array);
	return json_type(array) == JSON_ARRAY && json_next(&iter);
}

/* Namespaces have finalizers of their own beside everybody's. */
static bool has_finalizers(struct json_slice object, const struct json_meta *meta)
{
	if (has_elements(json_get(meta->metadata, "finalizers")))
		return true;
	return json_string_equals(meta->kind, "Namespace") && json_string_equals(meta->api_version, "v1") &&
	       has_elements(json_get(json_get(object, "spec"), "finalizers"));
}

static bool has_grace(const struct json_meta *meta)
{
	int64_t seconds;
	struct json_slice value = json_get(meta->metadata, "deletionGracePeriodSeconds");
	return value.data && !json_integer(value, &seconds) && seconds > 0;
}

/* The server keeps an object that is being deleted for as long as one of these is there, and no longer. */
static bool is_gone(const struct write *write, const struct json_meta *meta)
{
	if (!meta->deletion_timestamp.data)
		return is_method(write, "DELETE");
	return !has_finalizers(write->answer, meta) && !has_grace(meta);
}

/* The answer is of what was asked. */
static bool is_of_path(const struct write *write, const struct json_meta *meta)
{
	if (write->name && !json_string_equals(meta->name, write->name))
		return false;
	if (!write->resource->namespaced)
		return !meta->namespace.data;
	return write->namespace && json_string_equals(meta->namespace, write->namespace);
}

static void append_key(struct buf *key, const struct write *write, const char *name)
{
	if (write->resource->namespaced)
		buf_append_format(key, "%s/", write->namespace);
	buf_append_text(key, name);
}

static enum write_outcome read_object(const struct write *write, struct write_result *out)
{
	char *name = json_string_copy(out->meta.name);
	out->whole = name && is_of_path(write, &out->meta) && !json_string_append(out->meta.uid, &out->uid);
	if (out->whole)
		append_key(&out->key, write, name);
	alloc_free(name);
	if (!out->whole)
		return WRITE_NOTHING;
	return is_gone(write, &out->meta) ? WRITE_GONE : WRITE_PUT;
}

static enum write_outcome read_status(const struct write *write, struct write_result *out)
{
	struct json_slice uid = json_get(json_get(write->answer, "details"), "uid");
	bool placed = write->name && (write->namespace || !write->resource->namespaced);
	if (!is_method(write, "DELETE") || !placed || !status_is(write->answer) || json_string_append(uid, &out->uid))
		return WRITE_NOTHING;
	append_key(&out->key, write, write->name);
	return WRITE_GONE;
}

void write_read(const struct write *write, struct write_result *out)
{
	*out = (struct write_result){.outcome = WRITE_NOTHING};
	buf_init(&out->key, 0);
	buf_init(&out->uid, 0);
	if (!is_write(write))
		return;
	bool object = !json_meta(write->answer, &out->meta) && is_of_kind(&out->meta, write->resource);
	out->outcome = object ? read_object(write, out) : read_status(write, out);
}

void write_result_fini(struct write_result *result)
{
	buf_fini(&result->key);
	buf_fini(&result->uid);
}
