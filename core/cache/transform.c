#include "cache/transform.h"

#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(transform_type, "transform");

/* Memory that one large object took is not kept for the small ones after it. */
#define KEPT ((size_t)256 * 1024)

struct transform {
	unsigned count;
	struct transform_options options;
	struct buf made; /* what run makes, until it is taken */
};

struct transform *transform_new(const struct transform_options *options)
{
	struct transform *transform = alloc_object(&transform_type, sizeof(*transform));
	transform->count = 1;
	transform->options = *options;
	buf_init(&transform->made, 0);
	return transform;
}

struct transform *transform_ref(struct transform *transform)
{
	if (transform)
		transform->count++;
	return transform;
}

void transform_unref(struct transform *transform)
{
	if (!transform || --transform->count)
		return;
	transform->options.free(transform->options.data);
	buf_fini(&transform->made);
	alloc_object_free(&transform_type, transform);
}

const void *transform_identity(const struct transform *transform)
{
	return transform ? transform->options.identity : NULL;
}

static bool is_same_text(struct json_slice before, struct json_slice after)
{
	if (before.length == after.length && (!before.length || !memcmp(before.data, after.data, before.length)))
		return true;
	char *text = json_string_copy(before); /* escaped in another way, perhaps */
	bool same = text && json_string_equals(after, text);
	alloc_free(text);
	return same;
}

static int check_identity(const char *name, struct json_slice before, struct json_slice after, struct err *err)
{
	struct json_meta was, is;
	if (json_meta(before, &was))
		return err_set(err, "", "an object has no metadata");
	if (json_meta(after, &is))
		return err_set(err, "", "%s returned an object without metadata", name);
	const struct {
		const char *name;
		struct json_slice before, after;
	} texts[] = {
	    {"apiVersion", was.api_version, is.api_version},
	    {"kind", was.kind, is.kind},
	    {"metadata.namespace", was.namespace, is.namespace},
	    {"metadata.name", was.name, is.name},
	    {"metadata.uid", was.uid, is.uid},
	    {"metadata.resourceVersion", was.resource_version, is.resource_version},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!is_same_text(texts[i].before, texts[i].after))
			return err_set(err, "", "%s changed %s, which says which object this is", name, texts[i].name);
	return 0;
}

static int make(struct transform *transform, struct json_slice object, struct err *err)
{
	struct buf *made = &transform->made;
	const char *name = transform->options.name;
	buf_reset(made);
	if (transform->options.run(transform->options.data, object, made, err))
		return -1;
	if (made->length > OBJECT_BYTES_MAX)
		return err_set(err, "TooLarge", "%s returned an object of %zu bytes", name, made->length);
	return check_identity(name, object, (struct json_slice){made->data, made->length}, err);
}

static void tell_error(struct transform *transform, struct json_slice bytes, const struct err *err)
{
	struct object *object = object_new(bytes, NULL);
	transform->options.on_error(transform->options.data, err, object);
	object_unref(object);
}

void transform_apply(struct transform *transform, struct buf *object)
{
	struct err err;
	if (!transform)
		return;
	struct json_slice bytes = {object->data, object->length};
	if (make(transform, bytes, &err)) {
		tell_error(transform, bytes, &err);
	} else {
		struct buf before = *object;
		*object = transform->made;
		transform->made = before;
	}
	if (transform->made.capacity > KEPT)
		buf_fini(&transform->made);
}
