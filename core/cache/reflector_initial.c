/* Watch-list: a stream that begins with the initial state, each object as ADDED, up to a bookmark with an annotation,
 * and then goes on as a watch. Events in, one REPLACE out. The server's cache answers it page by page, so to say, and
 * nobody holds the whole list as one body. Where it does not work, a LIST takes its place. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_private.h"
#include "kube/watch_list.h"

#define END_ANNOTATION "k8s.io/initial-events-end"
#define MOST_CUT 3 /* in a row; then a LIST is tried */

bool reflector_begins_with_stream(const struct reflector *reflector)
{
	const struct reflector_options *options = &reflector->options;
	return !reflector->unfit && !options->page_size &&
	       watch_list_works(options->cluster->watch_list, options->resource);
}

void reflector_initial(struct reflector *reflector)
{
	struct listing *list = &reflector->list;
	struct buf query;
	reflector_end_list(reflector);
	strcpy(list->asked, reflector->lost ? "" : reflector->version);
	list->asked_at = clock_now();
	list->page = 1;
	list->counted = list->counted_bytes = 0;
	buf_init(&query, 0);
	if (*list->asked)
		request_query_add(&query, "resourceVersion", list->asked);
	request_query_add(&query, "resourceVersionMatch", "NotOlderThan");
	request_query_add(&query, "sendInitialEvents", "true");
	reflector->counts.lists++;
	reflector->state = REFLECTOR_CONNECTING;
	reflector_stream(reflector, &query, true);
	buf_fini(&query);
}

static void note_place(struct listing *list, size_t i)
{
	size_t length;
	const char *key = object_key(list->objects[i], &length);
	strmap_put(&list->places, key, length, (void *)(i + 1));
}

/* Most initial states are objects and nothing else. Only where one changes meanwhile is it known where each stands. */
static void begin_places(struct listing *list)
{
	if (list->untidy)
		return;
	list->untidy = true;
	strmap_init(&list->places);
	for (size_t i = 0; i < list->count; i++)
		note_place(list, i);
}

static bool is_stale(const struct object *before, const struct object *arrived)
{
	bool comparable;
	int order = object_version_compare(object_version(arrived), object_version(before), &comparable);
	return comparable && order < 0 && object_same_uid(arrived, before);
}

static void drop_last(struct listing *list)
{
	object_unref(list->objects[--list->count]);
}

/* Takes out what came before under the key of the last object; the newest state of an object stands where it came. */
static void settle_last(struct listing *list, bool deleted)
{
	size_t last = list->count - 1, length;
	const char *key = object_key(list->objects[last], &length);
	size_t before = (size_t)strmap_get(&list->places, key, length);
	if (before && is_stale(list->objects[before - 1], list->objects[last])) {
		drop_last(list);
		return;
	}
	if (before) {
		strmap_remove(&list->places, key, length);
		object_unref(list->objects[before - 1]);
		list->objects[before - 1] = NULL;
	}
	if (deleted)
		drop_last(list);
	else
		note_place(list, last);
}

static int take_object(struct reflector *reflector, const struct frame_event *event, const struct json_meta *meta,
		       struct err *err)
{
	struct listing *list = &reflector->list;
	if (event->type != FRAME_ADDED)
		begin_places(list);
	if (reflector_take_item(reflector, &event->object, meta, err))
		return -1;
	if (list->untidy)
		settle_last(list, event->type == FRAME_DELETED);
	if (event->type == FRAME_ADDED)
		reflector->watch.initial_at = clock_now();
	reflector->watch.events++;
	list->counted = list->count;
	list->counted_bytes += event->object.bytes.length;
	return 0;
}

static void leave_out_deleted(struct listing *list)
{
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->objects[i])
			list->objects[kept++] = list->objects[i];
	list->count = kept;
}

static int finish(struct reflector *reflector, const char *version)
{
	reflector->watch.initial = false;
	reflector->watch.moved = true;
	reflector->state = REFLECTOR_WATCHING;
	reflector->cut_initials = 0;
	leave_out_deleted(&reflector->list);
	reflector_recovered(reflector);
	reflector_replace(reflector, version);
	if (reflector->ended)
		return -1;
	reflector_end_list(reflector);
	reflector_guard(reflector);
	reflector_changed(reflector);
	return 0;
}

static bool is_end(const struct json_meta *meta)
{
	return json_string_equals(json_get(meta->annotations, END_ANNOTATION), "true");
}

/* A server that sends other bookmarks first does not know the parameter, and so never says where the state ends. One
 * that sends other kinds as well does not say what the state of this one is: nothing may be deleted because of it. */
static int take_bookmark(struct reflector *reflector, const struct json_meta *meta, struct err *err)
{
	struct watching *watch = &reflector->watch;
	if (!is_end(meta)) {
		watch->hopeless = true;
		return err_set(err, "", "the server sends the initial state without an end");
	}
	watch->refused = watch->skipped > 0;
	if (watch->refused)
		return err_set(err, "", "the initial state holds objects of another kind or namespace");
	char *version = json_string_copy(meta->resource_version);
	bool usable = version && *version && strlen(version) < VERSION_SIZE;
	int result = usable ? finish(reflector, version)
			    : err_set(err, "", "the end of the initial state has no usable resourceVersion");
	alloc_free(version);
	return result;
}

int reflector_initial_event(struct reflector *reflector, const struct frame_event *event, const struct json_meta *meta,
			    struct err *err)
{
	return event->type == FRAME_BOOKMARK ? take_bookmark(reflector, meta, err)
					     : take_object(reflector, event, meta, err);
}

void reflector_initial_give_up(struct reflector *reflector, const struct err *err)
{
	const struct resource *resource = reflector->options.resource;
	log_info(LOG_FIELDS({"namespace", reflector->options.namespace}, {"error", err->message}),
		 "%s/%s can't be had as one stream, listing it instead", resource->api_version, resource->kind);
	reflector->unfit = true;
	reflector_move(reflector, MOVE_FALL_BACK, err);
}

/* The answers of servers that don't know watch-lists, or not of this resource. 422 is the usual one: the feature is off
 * by default in Kubernetes 1.27 to 1.31 and in 1.33. */
static bool is_lasting(int code)
{
	return code == 400 || code == 404 || code == 405 || code == 422 || code == 501;
}

void reflector_initial_refused(struct reflector *reflector, const struct err *err, struct json_slice body)
{
	const struct listing *list = &reflector->list;
	bool started = reflector->watch.opened;
	if (!started && err->code == 429)
		reflector_move(reflector, MOVE_LIST_LATER, err);
	else if (!started && *list->asked && (err->code == 410 || reflector_version_is_too_large(err, body)))
		reflector_move(reflector, MOVE_LIST_TRUTH, err);
	else if (is_lasting(err->code))
		reflector_initial_give_up(reflector, err);
	else
		reflector_move(reflector, MOVE_FALL_BACK, err);
}

void reflector_initial_cut(struct reflector *reflector, const struct err *err)
{
	struct err why;
	if (err)
		why = *err;
	else
		err_set(&why, "Connection", "the stream ended before the initial state did");
	if (reflector->watch.opened && ++reflector->cut_initials >= MOST_CUT)
		reflector_initial_give_up(reflector, &why);
	else
		reflector_move(reflector, MOVE_LIST_LATER, &why);
}
