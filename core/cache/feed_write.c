/* A feed's own writes: which of them its store shows, and what handlers that come late are told instead. */
#include <string.h>

#include "base/buf.h"
#include "cache/feed.h"

/* NULL where nobody watches that namespace, or not now. */
static struct scope *scope_of(struct feed *feed, const char *namespace)
{
	for (size_t i = 0; i < feed->scope_count; i++) {
		struct scope *scope = &feed->scopes[i];
		if (!scope->namespace || (namespace && !strcmp(scope->namespace, namespace)))
			return scope->reflector ? scope : NULL;
	}
	return NULL;
}

/* What the watch has told includes that version. */
static bool has_told(const struct scope *scope, const struct object *object)
{
	struct reflector_report report;
	bool comparable;
	reflector_report(scope->reflector, &report);
	if (!*report.version)
		return false;
	int order = object_version_compare(object_version(object), report.version, &comparable);
	return order <= 0 || !comparable;
}

/* The answer as the cache keeps it. NULL where it can't be kept. */
static struct object *make_object(const struct feed *feed, const struct write *write, const struct write_result *result)
{
	struct outline answer = outline_of(write->answer);
	struct buf scratch;
	struct err err;
	buf_init(&scratch, 0);
	struct object *object =
	    projection_object(&feed->projection, feed->resource, &answer, &result->meta, &scratch, &err);
	buf_fini(&scratch);
	if (object)
		feed_pack(feed, object);
	return object;
}

static bool is_selected(const struct feed *feed, const struct write_result *result)
{
	return !feed->selector || selector_matches(feed->selector, result->meta.labels);
}

/* A field selector can't be judged on this side: of what it may leave out, only a key that is there already counts. */
static bool concerns(const struct feed *feed, const struct scope *scope, const struct write_result *result)
{
	return overlay_holds(&scope->overlay, result->key.data, result->key.length) ||
	       (!feed->spec.field_selector && is_selected(feed, result));
}

/* The answer as the cache keeps it. NULL where it is none of its objects, can't be kept, or brings no news. */
static struct object *make_news(const struct feed *feed, const struct scope *scope, const struct write *write,
				const struct write_result *result)
{
	if (!result->whole || !concerns(feed, scope, result))
		return NULL;
	struct object *object = make_object(feed, write, result);
	if (!object || !has_told(scope, object))
		return object;
	object_unref(object);
	return NULL;
}

void feed_note_write(struct feed *feed, const struct write *write, const struct write_result *result)
{
	/* What came before the answer may be of this object, and be newer. */
	feed_catch_up(feed);
	struct scope *scope = scope_of(feed, feed->resource->namespaced ? write->namespace : NULL);
	if (!scope)
		return;
	struct object *news = make_news(feed, scope, write, result);
	if (result->outcome == WRITE_GONE)
		overlay_remove(&scope->overlay, result->key.data, result->key.length, buf_text(&result->uid), news);
	else if (news)
		overlay_put(&scope->overlay, news, is_selected(feed, result));
	object_unref(news);
}

static const struct overlay_entry *find_entry(const struct feed *feed, const struct object *object)
{
	size_t length;
	const char *key = object_key(object, &length);
	const struct overlay_entry *entry = NULL;
	for (size_t i = 0; i < feed->scope_count && !entry; i++)
		entry = overlay_find(&feed->scopes[i].overlay, key, length);
	return entry;
}

struct object *feed_next_told(const struct feed *feed, struct store_cursor *cursor)
{
	for (struct object *object; (object = store_next(feed->store, cursor, NULL));) {
		const struct overlay_entry *entry = find_entry(feed, object);
		struct object *told = entry ? overlay_history(entry) : object;
		if (told)
			return told;
	}
	return NULL;
}

void feed_each_hidden(const struct feed *feed, store_visit_fn on_object, void *data)
{
	for (size_t i = 0; i < feed->scope_count; i++)
		overlay_each_hidden(&feed->scopes[i].overlay, on_object, data);
}
