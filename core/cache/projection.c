#include "cache/projection.h"

#include <string.h>

#include "base/alloc.h"

/* Behind drop_count, drop holds these: a projection sets both anew, so that it never copies the item's own. */
static const char *const replaced[] = {"apiVersion", "kind"};
#define REPLACED (sizeof(replaced) / sizeof(*replaced))

static int read_path(const char *text, struct json_path **out, struct err *err)
{
	struct json_path *path = json_path_new(text, err);
	if (!path)
		return -1;
	if (json_path_is_keys(path)) {
		*out = path;
		return 0;
	}
	json_path_free(path);
	return err_set(err, "", "path \"%s\": only keys can be dropped or kept, no [n] or [*]", text);
}

static int read_paths(const char *const *texts, size_t count, struct json_path **out, size_t *out_count,
		      struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (read_path(texts[i], &out[i], err))
			return -1;
		++*out_count;
	}
	return 0;
}

static bool has_key(const struct json_path *path, size_t place, const char *key)
{
	size_t length;
	const char *found = json_path_key(path, place, &length);
	return found && length == strlen(key) && !memcmp(found, key, length);
}

static bool ends_before(const struct json_path *path, size_t place)
{
	size_t length;
	return !json_path_key(path, place, &length);
}

/* What the cache tells objects apart by, and a script has to find in each. By the keys, since a path can be written in
 * several ways. */
static bool is_identity(const struct json_path *path)
{
	static const char *const needed[] = {"name", "namespace", "uid", "resourceVersion"};
	if (!has_key(path, 0, "metadata") || !ends_before(path, 2))
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (has_key(path, 1, needed[i]))
			return true;
	return ends_before(path, 1);
}

static int check_drop(const struct projection *projection, struct err *err)
{
	for (size_t i = 0; i < projection->drop_count; i++)
		if (is_identity(projection->drop[i]))
			return err_set(err, "", "path \"%s\" can't be dropped: it says which object this is",
				       json_path_text(projection->drop[i]));
	return 0;
}

/* It is that member of metadata, in it, or around it. */
static bool takes_from(const struct json_path *path, const char *member)
{
	return has_key(path, 0, "metadata") && (ends_before(path, 1) || has_key(path, 1, member));
}

static bool leaves_meta(const struct projection *projection)
{
	for (size_t i = 0; i < projection->drop_count; i++)
		if (takes_from(projection->drop[i], "labels") || takes_from(projection->drop[i], "deletionTimestamp"))
			return false;
	return !projection->keep;
}

int projection_init(struct projection *projection, const char *const *drop, size_t drop_count, const char *const *keep,
		    size_t keep_count, bool metadata_only, struct err *err)
{
	*projection = (struct projection){.metadata_only = metadata_only};
	if (drop_count && keep)
		return err_set(err, "", "drop and keep exclude each other");
	projection->drop = alloc_zero((drop_count + REPLACED) * sizeof(*projection->drop));
	int failed =
	    read_paths(drop, drop_count, projection->drop, &projection->drop_count, err) || check_drop(projection, err);
	if (!failed && keep) {
		projection->keep = alloc_zero(keep_count * sizeof(*projection->keep));
		failed = read_paths(keep, keep_count, projection->keep, &projection->keep_count, err);
	}
	if (failed) {
		projection_fini(projection);
		return -1;
	}
	for (size_t i = 0; i < REPLACED; i++)
		projection->drop[drop_count + i] = json_path_new(replaced[i], NULL);
	projection->metadata = json_path_new("metadata", NULL);
	projection->leaves_meta = leaves_meta(projection);
	return 0;
}

void projection_fini(struct projection *projection)
{
	for (size_t i = 0; i < projection->keep_count; i++)
		json_path_free(projection->keep[i]);
	for (size_t i = 0; projection->drop && i < projection->drop_count + REPLACED; i++)
		json_path_free(projection->drop[i]);
	json_path_free(projection->metadata);
	transform_unref(projection->transform);
	alloc_free(projection->keep);
	alloc_free(projection->drop);
	*projection = (struct projection){0};
}

/* A server that can't make partial objects sends whole ones. */
static bool is_whole(const struct projection *projection, const struct outline *item)
{
	return projection->metadata_only && !json_string_equals(outline_get(item, "kind"), "PartialObjectMetadata");
}

static int append_head(const char *api_version, const char *kind, struct buf *out)
{
	if (buf_append_text(out, "{\"apiVersion\":") || buf_append_json_string(out, api_version, strlen(api_version)) ||
	    buf_append_text(out, ",\"kind\":") || buf_append_json_string(out, kind, strlen(kind)))
		return -1;
	return 0;
}

/* The head, then the item's members without those that are dropped: its opening brace becomes the comma between. */
static int append_members(const struct projection *projection, const char *api_version, const char *kind,
			  const struct outline *item, struct buf *out)
{
	if (append_head(api_version, kind, out))
		return -1;
	size_t brace = out->length;
	if (outline_drop(item, projection->drop, projection->drop_count + REPLACED, out))
		return -1;
	size_t first = brace + 1 + strspn(out->data + brace + 1, " \t\r\n");
	if (out->data[first] != '}') {
		out->data[brace] = ',';
		return 0;
	}
	out->length = brace;
	return buf_append_char(out, '}');
}

static int apply(const struct projection *projection, const char *api_version, const char *kind,
		 const struct outline *item, struct buf *out)
{
	buf_reset(out);
	bool whole = is_whole(projection, item);
	if (!projection->keep && !whole)
		return append_members(projection, api_version, kind, item, out);
	struct json_path *const *keep = projection->keep ? projection->keep : &projection->metadata;
	if (outline_keep(item, keep, projection->keep ? projection->keep_count : 1, out))
		return -1;
	/* What is kept lies in front of what is made of it, until the end: no other buffer is needed. The room is made
	 * first, since the slice must not move. */
	size_t kept = out->length;
	if (!buf_reserve(out, kept + 6 * (strlen(api_version) + strlen(kind)) + 64))
		return -1;
	struct outline left = outline_of((struct json_slice){out->data, kept});
	int failed = append_members(projection, api_version, kind, &left, out);
	buf_consume(out, kept);
	return failed;
}

int projection_apply(const struct projection *projection, const char *api_version, const char *kind,
		     const struct outline *item, struct buf *out, struct err *err)
{
	if (apply(projection, api_version, kind, item, out))
		return err_set(err, "TooLarge", "an object is too large");
	transform_apply(projection->transform, out);
	return 0;
}

/* Of what was made of an item with that metadata. What says which object it is stays the item's, whatever a transform
 * does; the rest that a record takes is borrowed from the bytes, where it may be another. */
static struct json_meta meta_of(const struct projection *projection, const struct json_meta *item,
				struct json_slice made)
{
	struct json_meta meta = *item, own;
	if (projection->leaves_meta && !projection->transform)
		return meta;
	json_meta(made, &own);
	meta.labels = own.labels;
	meta.deletion_timestamp = own.deletion_timestamp;
	return meta;
}

struct object *projection_object(const struct projection *projection, const struct resource *resource,
				 const struct outline *item, const struct json_meta *meta, struct buf *scratch,
				 struct err *err)
{
	if (projection_apply(projection, resource->api_version, resource->kind, item, scratch, err))
		return NULL;
	struct json_slice made = {scratch->data, scratch->length};
	struct json_meta own = meta_of(projection, meta, made);
	return object_new_of(made, &own, err);
}
