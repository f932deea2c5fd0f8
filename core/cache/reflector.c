#include "cache/reflector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/reflector_private.h"

ALLOC_TYPE(reflector_type, "reflector");

/* The states and where each goes:
 *
 *   STOPPED     start                       -> CONNECTING, with a watch-list, or a LIST where that does not work
 *   CONNECTING  an answer                   -> RECEIVING or LISTING
 *   RECEIVING   the end of the state        -> WATCHING; the REPLACE goes out
 *               410, too large a version    -> CONNECTING, at once, at ""
 *               refused, or never ending    -> CONNECTING, at once, with a LIST (reflector_initial.c)
 *               no answer, a break          -> WAITING, then CONNECTING
 *   LISTING     the last page               -> WATCHING; the REPLACE goes out
 *               410, too large a version    -> CONNECTING, at once, at "" or unpaged (reflector_list.c)
 *               404                         -> STOPPED, and the owner is told
 *               any other failure           -> WAITING, then CONNECTING
 *   WATCHING    a clean end, a break        -> WATCHING, at once
 *               429, no answer              -> WAITING, then WATCHING (reflector_watch.c)
 *               any other failure           -> WAITING, then CONNECTING
 *   WAITING     the time has come           -> CONNECTING or WATCHING
 *
 * Silence for too long is a break (reflector_silence.c). A state that does not come whole leaves nothing behind; a
 * watch that fails leaves `version`, from which the next one goes on. */

/* A kind that a role may be granted for at any time is not waited for longer than this. */
#define LONGEST_FORBIDDEN 30.0

/* A scratch buffer that one large object made is not kept for the small ones after it. */
#define SCRATCH_KEPT ((size_t)256 * 1024)

static void on_timer(void *data);

struct reflector *reflector_new(const struct reflector_options *options, const struct reflector_events *events,
				void *data)
{
	struct reflector *reflector = alloc_object(&reflector_type, sizeof(*reflector));
	reflector->options = *options;
	reflector->events = *events;
	reflector->data = data;
	reflector->loop = options->cluster->loop;
	loop_timer_init(&reflector->timer, on_timer, reflector);
	reflector_guard_init(reflector);
	buf_init(&reflector->scratch, 0);
	err_clear(&reflector->err);
	return reflector;
}

static void destroy(void *object)
{
	struct reflector *reflector = object;
	reflector_end_list(reflector);
	reflector_end_watch(reflector);
	buf_fini(&reflector->scratch);
	alloc_object_free(&reflector_type, reflector);
}

static void end_request(struct reflector *reflector)
{
	loop_timer_stop(reflector->loop, &reflector->timer);
	loop_timer_stop(reflector->loop, &reflector->guard);
	reflector_end_probe(reflector);
	if (reflector->request)
		request_cancel(reflector->request);
	reflector->request = NULL;
}

void reflector_free(struct reflector *reflector)
{
	if (!reflector)
		return;
	reflector->ended = true;
	reflector->state = REFLECTOR_STOPPED;
	end_request(reflector);
	/* A splitter or frame may be on the stack, with this call in one of its callbacks. */
	loop_free_later(reflector->loop, destroy, reflector);
}

void reflector_changed(struct reflector *reflector)
{
	if (!reflector->ended)
		reflector->events.on_change(reflector->data);
}

void reflector_clear_error(struct reflector *reflector)
{
	reflector->attempts = 0;
	reflector->watch_failed = false;
	err_clear(&reflector->err);
}

/* "" is asked where the last resourceVersion was refused, "0" where there is none yet. */
static const char *list_version(const struct reflector *reflector)
{
	if (reflector->lost)
		return "";
	return *reflector->version ? reflector->version : "0";
}

static void begin(struct reflector *reflector)
{
	if (reflector_begins_with_stream(reflector))
		reflector_initial(reflector);
	else
		reflector_list(reflector, list_version(reflector), false);
}

void reflector_start(struct reflector *reflector)
{
	if (reflector->state == REFLECTOR_STOPPED && !reflector->ended)
		begin(reflector);
}

static void on_timer(void *data)
{
	struct reflector *reflector = data;
	if (reflector->next == MOVE_WATCH_LATER)
		reflector_watch(reflector);
	else
		begin(reflector);
	reflector_changed(reflector);
}

static struct backoff *backoff_for(struct reflector *reflector, const struct err *err)
{
	return err->code == 410 ? &reflector->expired : &reflector->backoff;
}

static void speak(struct reflector *reflector, const char *what, double wait)
{
	const struct reflector_options *options = &reflector->options;
	if (!backoff_speaks(backoff_for(reflector, &reflector->err)))
		return;
	reflector->spoke = true;
	char kind[330], attempt[16];
	snprintf(kind, sizeof(kind), "%s/%s", options->resource->api_version, options->resource->kind);
	snprintf(attempt, sizeof(attempt), "%u", reflector->attempts);
	log_warn(LOG_FIELDS({"kind", kind}, {"namespace", options->namespace}, {"selector", options->label_selector},
			    {"attempt", attempt}, {"error", reflector->err.message}),
		 "%s failed, %s in %.1f s", reflector->watch_failed ? "watch" : "list", what, wait);
}

/* The rule is what helps: where both don't fit, the server's words are cut. */
static void add_missing_rule(struct reflector *reflector)
{
	const struct reflector_options *options = &reflector->options;
	struct err *err = &reflector->err;
	char rule[600], name[sizeof(err->message)];
	struct buf resource;
	buf_init(&resource, 0);
	resource_name(options->resource, &resource);
	int length = snprintf(rule, sizeof(rule), " (missing: %s on %s%s%s)",
			      reflector->watch_failed ? "watch" : "list, watch", buf_text(&resource),
			      options->namespace ? " in namespace " : "", options->namespace ? options->namespace : "");
	buf_fini(&resource);
	memcpy(name, err->message, sizeof(name));
	snprintf(err->message, sizeof(err->message), "%.*s%s", (int)sizeof(name) - 1 - length, name, rule);
}

static void note_failure(struct reflector *reflector, const struct err *err, bool watch_failed)
{
	reflector->attempts++;
	reflector->err = *err;
	reflector->watch_failed = watch_failed;
	if (err->code == 403)
		add_missing_rule(reflector);
}

/* A watch-list is not, before its state has come. */
static bool is_watching(const struct reflector *reflector)
{
	return reflector->watch.frame && !reflector->watch.initial;
}

static double choose_wait(struct reflector *reflector, enum move move, const struct err *err)
{
	if (move == MOVE_WATCH_LATER && err->retry_after >= 0) {
		backoff_told(&reflector->backoff, err->retry_after);
		return err->retry_after;
	}
	double wait = backoff_next(backoff_for(reflector, err));
	return err->code == 401 || err->code == 403 ? fmin(wait, LONGEST_FORBIDDEN) : wait;
}

static void wait_for(struct reflector *reflector, enum move move, const struct err *err, bool watch_failed)
{
	double wait = choose_wait(reflector, move, err);
	note_failure(reflector, err, watch_failed);
	reflector->state = REFLECTOR_WAITING;
	reflector->next = move;
	reflector->next_try = clock_now() + wait;
	loop_timer_start(reflector->loop, &reflector->timer, wait);
	speak(reflector, move == MOVE_WATCH_LATER ? "watching again" : "listing again", wait);
}

static void stop_as_absent(struct reflector *reflector, const struct err *err)
{
	note_failure(reflector, err, false);
	reflector->state = REFLECTOR_STOPPED;
	reflector->events.on_absent(reflector->data);
}

const char *reflector_cause_name(enum reflector_cause cause)
{
	static const char *const names[REFLECTOR_CAUSES] = {
	    [REFLECTOR_ENDED] = "ended",         [REFLECTOR_EXPIRED] = "expired", [REFLECTOR_THROTTLED] = "throttled",
	    [REFLECTOR_STATUS] = "status",       [REFLECTOR_BROKEN] = "broken",   [REFLECTOR_SILENT] = "silent",
	    [REFLECTOR_MALFORMED] = "malformed",
	};
	return names[cause];
}

void reflector_counts_add(struct reflector_counts *to, const struct reflector_counts *from)
{
	to->lists += from->lists;
	to->watches += from->watches;
	to->bookmarks += from->bookmarks;
	to->skipped += from->skipped;
	for (int i = 0; i < REFLECTOR_CAUSES; i++) {
		to->relists[i] += from->relists[i];
		to->restarts[i] += from->restarts[i];
	}
	to->last_event_at = fmax(to->last_event_at, from->last_event_at);
	to->last_bookmark_at = fmax(to->last_bookmark_at, from->last_bookmark_at);
}

/* Silence has the reason Timeout, as a deadline that passed has: both mean that nothing came. */
static enum reflector_cause cause_of(const struct err *err)
{
	if (!err)
		return REFLECTOR_ENDED;
	if (err->code == 410)
		return REFLECTOR_EXPIRED;
	if (err->code == 429)
		return REFLECTOR_THROTTLED;
	if (err->code || !strcmp(err->reason, "Unauthorized")) /* without a code: an exec plugin failed */
		return REFLECTOR_STATUS;
	if (!strcmp(err->reason, "Timeout"))
		return REFLECTOR_SILENT;
	return strcmp(err->reason, "Connection") ? REFLECTOR_MALFORMED : REFLECTOR_BROKEN;
}

static void count_move(struct reflector *reflector, enum move move, const struct err *err)
{
	bool begun = reflector->watch.frame || reflector->list.page;
	if (move == MOVE_WATCH_LATER || (move == MOVE_WATCH && reflector->watch.frame))
		reflector->counts.restarts[cause_of(err)]++;
	else if (begun && move != MOVE_WATCH && move != MOVE_ABSENT)
		reflector->counts.relists[cause_of(err)]++;
}

void reflector_move(struct reflector *reflector, enum move move, const struct err *err)
{
	bool watching = is_watching(reflector);
	char asked[VERSION_SIZE];
	memcpy(asked, reflector->list.asked, sizeof(asked));
	count_move(reflector, move, err);
	end_request(reflector);
	reflector_end_list(reflector);
	reflector_end_watch(reflector);
	switch (move) {
	case MOVE_LIST_TRUTH:
		reflector->lost = true;
		begin(reflector);
		break;
	case MOVE_LIST_WHOLE:
		reflector_list(reflector, asked, true);
		break;
	case MOVE_FALL_BACK:
		reflector_list(reflector, list_version(reflector), false);
		break;
	case MOVE_WATCH:
		reflector_watch(reflector);
		break;
	case MOVE_LIST_LATER:
	case MOVE_WATCH_LATER:
		wait_for(reflector, move, err, watching);
		break;
	case MOVE_ABSENT:
		stop_as_absent(reflector, err);
		break;
	}
	reflector_changed(reflector);
}

void reflector_told_to_wait(struct reflector *reflector, const struct err *err, double seconds)
{
	backoff_told(&reflector->backoff, seconds);
	note_failure(reflector, err, is_watching(reflector));
	reflector->state = REFLECTOR_WAITING;
	reflector->next_try = clock_now() + seconds;
	reflector_guard(reflector);
	speak(reflector, "the same again, as the server asks,", seconds);
	reflector_changed(reflector);
}

void reflector_recovered(struct reflector *reflector)
{
	const struct resource *resource = reflector->options.resource;
	reflector_clear_error(reflector);
	if (reflector->spoke)
		log_info(LOG_FIELDS({"namespace", reflector->options.namespace},
				    {"selector", reflector->options.label_selector}),
			 "recovered: watching %s/%s", resource->api_version, resource->kind);
	reflector->spoke = false;
}

/* A list or watch of one namespace that brings objects of others would fill the cache with what no relist takes out. */
bool reflector_is_in_scope(const struct reflector *reflector, const struct json_meta *meta)
{
	const char *namespace = reflector->options.namespace;
	return !namespace || json_string_equals(meta->namespace, namespace);
}

/* The first, the tenth, the hundredth … */
static bool is_round(unsigned long count)
{
	while (count % 10 == 0)
		count /= 10;
	return count == 1;
}

void reflector_skip(struct reflector *reflector, const struct json_meta *meta)
{
	const struct resource *resource = reflector->options.resource;
	reflector->watch.skipped++;
	if (!is_round(++reflector->counts.skipped))
		return;
	char *kind = json_string_copy(meta->kind), *namespace = json_string_copy(meta->namespace);
	log_warn(LOG_FIELDS({"namespace", reflector->options.namespace}),
		 "%s/%s: skipped what is of another kind or namespace: kind %s, namespace %s (%lu so far)",
		 resource->api_version, resource->kind, kind ? kind : "none", namespace ? namespace : "none",
		 reflector->counts.skipped);
	alloc_free(kind);
	alloc_free(namespace);
}

struct object *reflector_object(struct reflector *reflector, const struct outline *item, const struct json_meta *meta,
				struct err *err)
{
	const struct reflector_options *options = &reflector->options;
	struct buf *scratch = &reflector->scratch;
	struct object *object = projection_object(options->projection, options->resource, item, meta, scratch, err);
	if (scratch->capacity > SCRATCH_KEPT)
		buf_fini(scratch);
	if (object && reflector->events.on_object)
		reflector->events.on_object(reflector->data, object);
	return object;
}

void reflector_add_selectors(const struct reflector *reflector, struct buf *query)
{
	const struct reflector_options *options = &reflector->options;
	if (options->field_selector)
		request_query_add(query, "fieldSelector", options->field_selector);
	if (options->label_selector)
		request_query_add(query, "labelSelector", options->label_selector);
}

static const char *accept_of(const struct reflector *reflector, bool list)
{
	if (!reflector->options.projection->metadata_only)
		return "application/json";
	return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
		    : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
}

void reflector_request(struct reflector *reflector, const struct buf *query, bool list,
		       const struct request_events *events, double timeout)
{
	struct buf path;
	buf_init(&path, 0);
	resource_path(reflector->options.resource, reflector->options.namespace, NULL, NULL, &path);
	struct request_options options = {
	    .method = "GET",
	    .path = buf_text(&path),
	    .query = buf_text(query),
	    .accept = accept_of(reflector, list),
	    .timeout = timeout,
	    .stream = true,
	    .list = list,
	};
	reflector->request = request_start(reflector->options.cluster, &options, events, reflector);
	reflector_guard(reflector);
	buf_fini(&path);
}

void reflector_report(const struct reflector *reflector, struct reflector_report *out)
{
	*out = (struct reflector_report){
	    .state = reflector->state,
	    .page = reflector->list.page,
	    .objects = reflector->list.counted,
	    .bytes = reflector->list.counted_bytes,
	    .attempts = reflector->attempts,
	    .next_try = reflector->next_try,
	    .err = reflector->err,
	    .version = reflector->version,
	    .counts = reflector->counts,
	    .streaming = reflector->state == REFLECTOR_WATCHING && reflector->watch.opened,
	    .watch_failed = reflector->watch_failed,
	};
}
