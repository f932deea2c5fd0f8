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

/* What the cache tells objects apart by, and a script has to find in each. */
static bool is_identity(const char *text)
{
	static const char *const needed[] = {"metadata", "metadata.name", "metadata.namespace", "metadata.uid",
					     "metadata.resourceVersion"};
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!strcmp(text, needed[i]))
			return true;
	return false;
}

static int check_drop(const char *const *texts, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (is_identity(texts[i]))
			return err_set(err, "", "path \"%s\" can't be dropped: it says which object this is", texts[i]);
	return 0;
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

static bool is_key(const struct json_path *path, size_t place, const char *key)
{
	size_t length;
	const char *found = json_path_key(path, place, &length);
	return !found || (length == strlen(key) && !memcmp(found, key, length));
}

/* Nothing in them, nor they, nor what they are in, is dropped. */
static bool leaves_labels(const struct projection *projection)
{
	for (size_t i = 0; i < projection->drop_count; i++)
		if (is_key(projection->drop[i], 0, "metadata") && is_key(projection->drop[i], 1, "labels"))
			return false;
	return !projection->keep;
}

int projection_init(struct projection *projection, const char *const *drop, size_t drop_count, const char *const *keep,
		    size_t keep_count, bool metadata_only, struct err *err)
{
	*projection = (struct projection){.metadata_only = metadata_only};
	if (drop_count && keep)
		return err_set(err, "", "drop and keep exclude each other");
	if (check_drop(drop, drop_count, err))
		return -1;
	projection->drop = alloc_zero((drop_count + REPLACED) * sizeof(*projection->drop));
	int failed = read_paths(drop, drop_count, projection->drop, &projection->drop_count, err);
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
	projection->leaves_labels = leaves_labels(projection);
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

struct json_meta projection_meta(const struct projection *projection, const struct json_meta *item,
				 struct json_slice made)
{
	struct json_meta meta = *item, own;
	if (projection->leaves_labels && !projection->transform)
		return meta;
	json_meta(made, &own);
	meta.labels = own.labels;
	return meta;
}
