/* WATCH: a stream of frames in, one delta an event out. The resourceVersion moves with each event that was taken, so
 * that the next WATCH goes on where this one ended, however it ended. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_private.h"
#include "kube/status.h"

#define SHORTEST_TIMEOUT 300
#define TIMEOUT_SPREAD 300
#define GRACE 10.0      /* what a server may be late with the end that it was asked for */
#define SHORT_WATCH 1.0 /* one that ends earlier without an event is a failure */

void reflector_end_watch(struct reflector *reflector)
{
	frame_free(reflector->watch.frame);
	reflector->watch = (struct watching){0};
}

/* A duplicate or late event must not take the watch back to where it began: true where it has moved on. */
static bool note_version(struct reflector *reflector, const char *version)
{
	bool comparable;
	if (!*version)
		return false;
	int order = object_version_compare(version, reflector->version, &comparable);
	if (comparable && order <= 0)
		return false;
	strcpy(reflector->version, version);
	return true;
}

static bool is_own_kind(const struct reflector *reflector, const struct json_meta *meta)
{
	const struct resource *resource = reflector->options.resource;
	if (json_string_equals(meta->kind, resource->kind) &&
	    json_string_equals(meta->api_version, resource->api_version))
		return true;
	return reflector->options.projection->metadata_only &&
	       json_string_equals(meta->kind, "PartialObjectMetadata") &&
	       json_string_equals(meta->api_version, "meta.k8s.io/v1");
}

static int take_bookmark(struct reflector *reflector, const struct json_meta *meta)
{
	struct delta *delta = delta_new(DELTA_BOOKMARK);
	delta->version = json_string_copy(meta->resource_version);
	if (delta->version && strlen(delta->version) < VERSION_SIZE)
		note_version(reflector, delta->version);
	reflector->counts.bookmarks++;
	reflector->watch.bookmarks++;
	reflector->counts.last_bookmark_at = clock_now();
	reflector_guard(reflector);
	reflector->events.on_delta(reflector->data, delta);
	return reflector->ended ? -1 : 0;
}

static int take_object(struct reflector *reflector, const struct frame_event *event, const struct json_meta *meta,
		       struct err *err)
{
	struct object *object = reflector_object(reflector, &event->object, meta, err);
	if (!object)
		return -1;
	struct delta *delta = delta_new(event->type == FRAME_DELETED ? DELTA_DELETE : DELTA_PUT);
	delta->object = object;
	reflector->counts.last_event_at = clock_now();
	reflector->watch.events += note_version(reflector, object_version(object));
	reflector->events.on_delta(reflector->data, delta);
	return reflector->ended ? -1 : 0;
}

/* The ERROR rows of the table. 410 means that the version was compacted: a LIST at it may still be answered from a
 * cache. */
static int take_error(struct reflector *reflector, struct json_slice status, struct err *err)
{
	status_of_object(status, err);
	reflector->watch.refused = true;
	reflector->watch.move = err->code == 429 ? MOVE_WATCH_LATER : MOVE_LIST_LATER;
	return -1;
}

static int refuse_type(struct json_slice type, struct err *err)
{
	int shown = type.length < 40 ? (int)type.length : 40;
	return err_set(err, "", "an event of the unknown type %.*s", shown, type.data);
}

static int on_event(void *data, const struct frame_event *event, struct err *err)
{
	struct reflector *reflector = data;
	struct json_meta meta;
	if (event->type == FRAME_ERROR)
		return take_error(reflector, event->object.bytes, err);
	if (event->type == FRAME_UNKNOWN)
		return refuse_type(event->type_text, err);
	if (outline_meta(&event->object, &meta))
		return err_set(err, "", "an event's object has no metadata");
	bool bookmark = event->type == FRAME_BOOKMARK; /* which has no namespace */
	if (!is_own_kind(reflector, &meta) || (!bookmark && !reflector_is_in_scope(reflector, &meta))) {
		reflector_skip(reflector, &meta);
		return 0;
	}
	if (reflector->watch.initial)
		return reflector_initial_event(reflector, event, &meta, err);
	if (bookmark ? take_bookmark(reflector, &meta) : take_object(reflector, event, &meta, err))
		return -1;
	reflector->watch.moved = true;
	return 0;
}

static void on_head(void *data, const struct http_head *head)
{
	struct reflector *reflector = data;
	if (head->status < 200 || head->status > 299)
		return;
	struct watching *watch = &reflector->watch;
	watch->opened = true;
	watch->opened_at = watch->initial_at = clock_now();
	reflector->state = watch->initial ? REFLECTOR_RECEIVING : REFLECTOR_WATCHING;
	if (!watch->initial)
		reflector_recovered(reflector);
	if (!watch->initial && reflector->cut_off)
		reflector_probe(reflector);
	reflector->cut_off = false;
	reflector_guard(reflector);
	reflector_changed(reflector);
}

/* What can't be read is asked for again from the version before it; where that has not helped, all is. */
static enum move move_after_garbage(const struct watching *watch)
{
	return watch->moved ? MOVE_WATCH_LATER : MOVE_LIST_LATER;
}

static void refuse_stream(struct reflector *reflector, const struct err *err)
{
	struct watching *watch = &reflector->watch;
	struct json_slice none = {NULL, 0};
	if (watch->initial && watch->hopeless)
		reflector_initial_give_up(reflector, err);
	else if (watch->initial && watch->refused)
		reflector_initial_refused(reflector, err, none);
	else if (watch->initial)
		reflector_initial_cut(reflector, err);
	else
		reflector_move(reflector, watch->refused ? watch->move : move_after_garbage(watch), err);
}

static void on_chunk(void *data, const char *bytes, size_t length)
{
	struct reflector *reflector = data;
	struct err err;
	bool initial = reflector->watch.initial;
	int result = frame_feed(reflector->watch.frame, bytes, length, &err);
	if (reflector->ended)
		return;
	if (result)
		refuse_stream(reflector, &err);
	else if (initial)
		reflector_changed(reflector);
}

static void on_wait(void *data, const struct err *err, double seconds)
{
	struct reflector *reflector = data;
	struct json_slice none = {NULL, 0};
	if (reflector->watch.initial && reflector_version_is_too_large(err, none))
		reflector_initial_refused(reflector, err, none);
	else
		reflector_told_to_wait(reflector, err, seconds);
}

/* The "WATCH start" rows. No code: refused, or ended before an answer. */
static enum move choose_move(const struct err *err)
{
	bool asked_to_wait = err->code == 429 || (err->code >= 500 && err->retry_after >= 0);
	return !err->code || asked_to_wait ? MOVE_WATCH_LATER : MOVE_LIST_LATER;
}

/* An opened stream that is over. One that broke off is no worse than one that ended: what was not received is sent
 * again. */
static void end_stream(struct reflector *reflector, const struct err *err)
{
	struct watching *watch = &reflector->watch;
	double lasted = clock_now() - watch->opened_at;
	struct err why;
	if (!watch->events && lasted < SHORT_WATCH) {
		err_set(&why, "Connection", "the watch ended after %.1f s without an event%s%s", lasted,
			err ? ": " : "", err ? err->message : "");
		reflector_move(reflector, MOVE_LIST_LATER, &why);
	} else if (!err && frame_finish(watch->frame, &why)) {
		reflector_move(reflector, move_after_garbage(watch), &why);
	} else {
		reflector_move(reflector, MOVE_WATCH, err);
	}
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct reflector *reflector = data;
	struct watching *watch = &reflector->watch;
	reflector->request = NULL;
	reflector->cut_off |= err && (!err->code || err->code >= 500);
	if (watch->initial && err && err->code)
		reflector_initial_refused(reflector, err, body);
	else if (watch->initial)
		reflector_initial_cut(reflector, err);
	else if (watch->opened)
		end_stream(reflector, err);
	else
		reflector_move(reflector, choose_move(err), err);
}

void reflector_stream(struct reflector *reflector, struct buf *query, bool initial)
{
	static const struct request_events events = {on_head, on_chunk, on_wait, on_done};
	int timeout = SHORTEST_TIMEOUT + (int)(backoff_random() * TIMEOUT_SPREAD);
	request_query_add(query, "allowWatchBookmarks", "true");
	reflector_add_selectors(reflector, query);
	buf_append_format(query, "&timeoutSeconds=%d&watch=true", timeout);
	reflector->watch = (struct watching){
	    .frame = frame_new(OBJECT_BYTES_MAX, on_event, reflector),
	    .initial = initial,
	};
	reflector->counts.watches++;
	reflector_request(reflector, query, false, &events, timeout + GRACE);
}

void reflector_watch(struct reflector *reflector)
{
	struct buf query;
	buf_init(&query, 0);
	request_query_add(&query, "resourceVersion", reflector->version);
	reflector->state = REFLECTOR_WATCHING;
	reflector_stream(reflector, &query, false);
	buf_fini(&query);
}
