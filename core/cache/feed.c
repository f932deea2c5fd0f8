#include "cache/feed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/informer_private.h"

ALLOC_TYPE(feed_type, "feed");

#define LONGEST_ABSENT 30.0

static void look_up(struct feed *feed);
static void run_apply(void *data);
static void run_absent(void *data);
static void on_retry(void *data);

static struct loop *loop_of(const struct feed *feed)
{
	return feed->cluster->loop;
}

static const struct spec *first_spec(const struct feed *feed)
{
	return &informer_of_node(feed->informers.next)->spec;
}

/* For the log. */
static const char *label_of(const struct feed *feed)
{
	return first_spec(feed)->label;
}

static void on_notification(void *data, const struct notification *notification)
{
	struct feed *feed = data;
	LIST_EACH (&feed->informers, node)
		informer_notify(informer_of_node(node), notification);
}

static void changed(struct feed *feed)
{
	LIST_EACH (&feed->informers, node)
		informer_changed(informer_of_node(node));
}

static int init_projection(struct projection *projection, const struct informer_spec *spec, struct err *err)
{
	bool as_usual = !spec->drop_given && !spec->keep;
	const char *const *drop = as_usual ? informer_usual_drop : spec->drop;
	size_t drop_count = as_usual ? 1 : spec->drop_given ? spec->drop_count : 0;
	if (projection_init(projection, drop, drop_count, spec->keep, spec->keep_count, spec->metadata_only, err))
		return -1;
	projection->transform = transform_ref(spec->transform);
	return 0;
}

struct feed *feed_new(struct cluster *cluster, struct list *peers, const struct informer_spec *from, struct err *err)
{
	struct spec spec;
	struct projection projection;
	if (spec_init(&spec, from, err))
		return NULL;
	if (init_projection(&projection, from, err)) {
		spec_fini(&spec);
		return NULL;
	}
	struct feed *feed = alloc_object(&feed_type, sizeof(*feed));
	feed->count = 1;
	feed->cluster = cluster;
	feed->peers = peers;
	feed->spec = spec;
	feed->projection = projection;
	feed->selector = spec.label_selector ? selector_new(spec.label_selector, NULL) : NULL;
	feed->store = store_new();
	feed->packer = from->raw ? NULL : packer_new(cluster->loop, feed->store);
	feed->apply = (struct apply){.store = feed->store, .notify = on_notification, .data = feed};
	queue_init(&feed->queue);
	list_init(&feed->walks);
	list_init(&feed->informers);
	list_add_tail(peers, &feed->node);
	err_clear(&feed->err);
	loop_timer_init(&feed->retry, on_retry, feed);
	loop_job_init(&feed->apply_job, run_apply, feed);
	loop_job_init(&feed->absent_job, run_absent, feed);
	return feed;
}

static void end_reflectors(struct feed *feed)
{
	for (size_t i = 0; i < feed->scope_count; i++) {
		struct reflector_report report;
		if (!feed->scopes[i].reflector)
			continue;
		reflector_report(feed->scopes[i].reflector, &report);
		reflector_counts_add(&feed->past, &report.counts);
		reflector_free(feed->scopes[i].reflector);
		feed->scopes[i].reflector = NULL;
	}
}

void feed_stop(struct feed *feed)
{
	feed->phase = FEED_STOPPED;
	list_remove(&feed->node);
	if (feed->lookup)
		discovery_cancel(feed->lookup);
	feed->lookup = NULL;
	loop_timer_stop(loop_of(feed), &feed->retry);
	end_reflectors(feed);
	loop_job_cancel(&feed->absent_job);
}

void feed_pack(const struct feed *feed, struct object *object)
{
	if (feed->packer)
		packer_add(feed->packer, object);
}

static bool free_some(void *object, double until)
{
	struct feed *feed = object;
	while (feed->current || (feed->current = queue_pop(&feed->queue))) {
		if (!delta_free_some(feed->current, until))
			return false;
		feed->current = NULL;
	}
	if (!store_free_some(feed->store, until))
		return false;
	projection_fini(&feed->projection);
	selector_free(feed->selector);
	spec_fini(&feed->spec);
	alloc_free(feed->scopes);
	alloc_object_free(&feed_type, feed);
	return true;
}

struct feed *feed_ref(struct feed *feed)
{
	feed->count++;
	return feed;
}

void feed_unref(struct feed *feed)
{
	if (--feed->count)
		return;
	feed_stop(feed);
	loop_job_cancel(&feed->apply_job);
	for (size_t i = 0; i < feed->scope_count; i++)
		overlay_fini(&feed->scopes[i].overlay);
	if (feed->current)
		apply_drop(&feed->apply, feed->current);
	packer_free(feed->packer);
	feed->packer = NULL;
	/* Its reflectors still look at its projection, and a callback of its own may be on the stack. */
	loop_free_slowly(loop_of(feed), free_some, feed);
}

/* An overlay's entries that come later are of newer writes. */
static bool tells_nothing(const struct scope *scope, const struct delta *delta)
{
	return delta->type == DELTA_BOOKMARK && overlay_is_empty(&scope->overlay);
}

static void on_delta(void *data, struct delta *delta)
{
	struct scope *scope = data;
	struct feed *feed = scope->feed;
	if (tells_nothing(scope, delta)) {
		delta_free(delta);
		return;
	}
	delta->scope = (size_t)(scope - feed->scopes);
	queue_push(&feed->queue, delta);
	loop_post(loop_of(feed), &feed->apply_job);
}

/* The key as the store has it, from a list's item. False where something in it is escaped, which no real name is. */
static bool key_of_meta(const struct json_meta *meta, char *key, size_t size, size_t *length)
{
	struct json_slice name = meta->name, namespace = meta->namespace;
	*length = 0;
	if (name.length < 3 || name.length + namespace.length > size)
		return false;
	if (namespace.length > 2) {
		memcpy(key, namespace.data + 1, namespace.length - 2);
		*length = namespace.length - 2;
		key[(*length)++] = '/';
	}
	memcpy(key + *length, name.data + 1, name.length - 2);
	*length += name.length - 2;
	return !memchr(key, '\\', *length);
}

static struct object *on_known(void *data, const struct json_meta *meta)
{
	const struct feed *feed = ((struct scope *)data)->feed;
	char key[2 * 253 + 4];
	size_t length;
	if (!key_of_meta(meta, key, sizeof(key), &length))
		return NULL;
	struct object *object = store_get_key(feed->store, key, length);
	char uid[OBJECT_UID_SIZE];
	if (!object || !json_string_equals(meta->resource_version, object_version(object)) ||
	    !json_string_equals(meta->uid, object_uid(object, uid)))
		return NULL;
	return object;
}

static void on_object(void *data, struct object *object)
{
	feed_pack(((struct scope *)data)->feed, object);
}

/* What is stored stays, since a right that is taken away says nothing about the objects. */
static void note_staleness(struct scope *scope)
{
	struct reflector_report report;
	reflector_report(scope->reflector, &report);
	bool stale = scope->listed && (report.err.code == 401 || report.err.code == 403);
	if (stale && !scope->stale)
		log_warn(LOG_FIELDS({"informer", label_of(scope->feed)}, {"namespace", scope->namespace},
				    {"error", report.err.message}),
			 "the cache is stale: it keeps its objects until the server lets it go on");
	scope->stale = stale;
}

static void on_change(void *data)
{
	struct scope *scope = data;
	if (scope->reflector)
		note_staleness(scope);
	changed(scope->feed);
}

static void on_absent(void *data)
{
	struct feed *feed = ((struct scope *)data)->feed;
	loop_post(loop_of(feed), &feed->absent_job);
}

static void log_sync(const struct feed *feed)
{
	size_t objects = store_count(feed->store);
	log_info(LOG_FIELDS({"informer", label_of(feed)}), "synced: %zu object%s, %zu bytes, %.2f s", objects,
		 objects == 1 ? "" : "s", store_bytes(feed->store), feed->synced_at - feed->started_at);
}

static void note_listed(struct feed *feed, struct scope *scope)
{
	scope->listed = true;
	if (++feed->listed_count == feed->scope_count) {
		feed->synced = true;
		feed->synced_at = clock_now();
		log_sync(feed);
		if (feed->packer)
			packer_fill(feed->packer);
	}
	changed(feed);
}

/* True when the delta under way is done. */
static bool go_on(struct feed *feed, double until)
{
	struct delta *delta = feed->current;
	struct scope *scope = &feed->scopes[delta->scope];
	bool first = delta->type == DELTA_REPLACE && !scope->listed;
	feed->apply.overlay = &scope->overlay;
	feed->applying = true;
	bool done = apply_delta(&feed->apply, delta, first, until);
	feed->applying = false;
	if (!done)
		return false;
	feed->current = NULL;
	delta_free(delta);
	if (first && feed->phase != FEED_STOPPED)
		note_listed(feed, scope);
	return true;
}

static bool walk_on(struct feed *feed, double until)
{
	while (!list_is_empty(&feed->walks))
		if (!listener_walk(listener_of_walk_node(feed->walks.next), until))
			return false;
	return true;
}

/* What was begun. */
static bool settle(struct feed *feed, double until)
{
	return (!feed->current || go_on(feed, until)) && walk_on(feed, until);
}

void feed_settle(struct feed *feed)
{
	if (!feed->applying)
		settle(feed, INFINITY);
}

void feed_mend(struct feed *feed)
{
	if (!feed->applying && apply_is_torn(&feed->apply))
		apply_mend(&feed->apply, feed->current);
}

/* One that is stopped applies nothing more. */
static bool begin_next(struct feed *feed)
{
	if (feed->phase != FEED_STOPPED)
		feed->current = queue_pop(&feed->queue);
	return feed->current != NULL;
}

void feed_catch_up(struct feed *feed)
{
	if (feed->applying)
		return;
	do
		settle(feed, INFINITY);
	while (begin_next(feed));
	loop_job_cancel(&feed->apply_job);
}

void feed_begin_walk(struct feed *feed, struct listener *listener)
{
	bool waits = feed->current || !list_is_empty(&feed->walks);
	list_add_tail(&feed->walks, listener_walk_node(listener));
	if (waits || !listener_walk(listener, 0))
		loop_post(loop_of(feed), &feed->apply_job);
}

static void run_apply(void *data)
{
	/* An index function may be a script's, and may give up the last handle on this. */
	struct feed *feed = feed_ref(data);
	double until = loop_until(loop_of(feed));
	bool more = true;
	while (more && settle(feed, until) && clock_now() < until)
		more = begin_next(feed);
	if (more)
		loop_post(loop_of(feed), &feed->apply_job);
	feed_unref(feed);
}

/* One scope for each namespace; one for all where none was named or the kind has none. */
static void make_scopes(struct feed *feed)
{
	size_t named = feed->resource->namespaced ? feed->spec.namespace_count : 0;
	feed->scope_count = named ? named : 1;
	feed->scopes = alloc_zero(feed->scope_count * sizeof(*feed->scopes));
	for (size_t i = 0; i < feed->scope_count; i++) {
		feed->scopes[i].feed = feed;
		feed->scopes[i].namespace = named ? feed->spec.namespaces[i] : NULL;
		overlay_init(&feed->scopes[i].overlay, feed->store);
	}
}

static void start_reflector(struct feed *feed, struct scope *scope)
{
	static const struct reflector_events events = {on_delta, on_known, on_object, on_change, on_absent};
	struct reflector_options options = {
	    .cluster = feed->cluster,
	    .resource = feed->resource,
	    .projection = &feed->projection,
	    .namespace = scope->namespace,
	    .label_selector = feed->spec.label_selector,
	    .field_selector = feed->spec.field_selector,
	    .page_size = feed->spec.page_size,
	};
	scope->reflector = reflector_new(&options, &events, scope);
	reflector_start(scope->reflector);
}

/* The kind is gone, and with it its objects. What is queued comes first. */
static void empty_scopes(struct feed *feed)
{
	for (size_t i = 0; i < feed->scope_count; i++) {
		struct scope *scope = &feed->scopes[i];
		if (!scope->listed)
			continue;
		struct delta *delta = delta_new(DELTA_REPLACE);
		delta->namespace = alloc_string(scope->namespace);
		delta->truth = true;
		on_delta(scope, delta);
	}
}

bool feed_is_needed(const struct feed *feed)
{
	LIST_EACH (&feed->informers, node)
		if (informer_of_node(node)->needed)
			return true;
	return false;
}

bool feed_is_awaited(const struct feed *feed)
{
	return !feed->synced && feed_is_needed(feed);
}

bool feed_is_parked(const struct feed *feed)
{
	return feed->phase != FEED_RUNNING && !strcmp(feed->err.reason, "NoKind") && !feed_is_awaited(feed);
}

/* That a kind is parked is no trouble, and said once. */
static void tell_look_up(struct feed *feed, double wait)
{
	char attempt[16];
	bool parked = feed_is_parked(feed), speaks = backoff_speaks(&feed->backoff);
	snprintf(attempt, sizeof(attempt), "%u", feed->attempts);
	if (parked && !feed->told_parked)
		log_info(LOG_FIELDS({"informer", label_of(feed)}, {"error", feed->err.message}),
			 "parked: it goes on by itself when the kind is there");
	else if (speaks && !parked)
		log_warn(LOG_FIELDS({"informer", label_of(feed)}, {"attempt", attempt}, {"error", feed->err.message}),
			 "looking up the kind failed, asking again in %.1f s", wait);
	feed->told_parked |= parked;
}

static void look_up_later(struct feed *feed, const struct err *err)
{
	double wait = fmin(backoff_next(&feed->backoff), LONGEST_ABSENT);
	feed->phase = FEED_WAITING;
	feed->attempts++;
	feed->err = *err;
	feed->waits_from = clock_now();
	feed->next_try = feed->waits_from + wait;
	loop_timer_start(loop_of(feed), &feed->retry, wait);
	tell_look_up(feed, wait);
	changed(feed);
}

/* A kind that comes back may have another plural, and then be what some of those that share it asked for, but not what
 * the others did. */
static int check_all_meant(const struct feed *feed, const struct resource *resource, struct err *err)
{
	LIST_EACH (&feed->informers, node) {
		const struct spec *spec = &informer_of_node(node)->spec;
		if (spec->kind ? !strcmp(spec->kind, resource->kind) : !strcmp(spec->resource, resource->plural))
			continue;
		return err_set(err, "NoKind", "%s has the kind %s as the resource %s now, and %s was asked for too",
			       resource->api_version, resource->kind, resource->plural,
			       spec->kind ? spec->kind : spec->resource);
	}
	return 0;
}

/* A feed of the same resource, namespaces, selectors and projection, which runs or will as soon as it has looked. A
 * transform is told whose informer it serves, so it serves one alone. */
static struct feed *find_peer(const struct feed *feed, const struct resource *resource)
{
	if (feed->projection.transform)
		return NULL;
	LIST_EACH (feed->peers, node) {
		struct feed *peer = LIST_ENTRY(node, struct feed, node);
		if (peer != feed && peer->resource == resource && !strcmp(peer->spec.scope, feed->spec.scope))
			return peer;
	}
	return NULL;
}

/* Gives the informer away, and itself up. */
static void join(struct feed *feed, struct feed *peer)
{
	struct informer *informer = informer_of_node(feed->informers.next);
	log_info(LOG_FIELDS({"informer", label_of(feed)}), "the same as %s: one watch serves both%s%s", label_of(peer),
		 feed->spec.page_size && feed->spec.page_size != peer->spec.page_size ? ", with that one's page_size"
										      : "",
		 feed->spec.raw != peer->spec.raw ? ", with that one's cache" : "");
	if (peer->phase == FEED_WAITING) {
		loop_timer_stop(loop_of(peer), &peer->retry);
		look_up(peer);
	}
	informer_join(informer, peer);
}

static void run(struct feed *feed, const struct resource *resource)
{
	if (feed->told_parked)
		log_info(LOG_FIELDS({"informer", label_of(feed)}), "the kind is there");
	feed->told_parked = false;
	feed->resource = resource;
	feed->phase = FEED_RUNNING;
	feed->attempts = 0;
	err_clear(&feed->err);
	if (!feed->scopes)
		make_scopes(feed);
	for (size_t i = 0; i < feed->scope_count; i++)
		start_reflector(feed, &feed->scopes[i]);
	changed(feed);
}

static void on_found(void *data, const struct resource *resource, const struct err *err)
{
	struct feed *feed = data, *peer;
	struct err why;
	feed->lookup = NULL;
	if (resource && check_all_meant(feed, resource, &why)) {
		resource = NULL;
		err = &why;
	}
	if (!resource) {
		if (!strcmp(err->reason, "NoKind"))
			empty_scopes(feed);
		look_up_later(feed, err);
	} else if (!feed->scopes && (peer = find_peer(feed, resource))) {
		join(feed, peer);
	} else {
		run(feed, resource);
	}
}

static void look_up(struct feed *feed)
{
	const struct spec *spec = first_spec(feed);
	feed->phase = FEED_LOOKING;
	feed->lookup =
	    discovery_find(feed->cluster->discovery, spec->api_version, spec->kind, spec->resource, on_found, feed);
	changed(feed);
}

/* Those that have waited for half of their time look with it, so that many absent kinds soon ask together, in one
 * request for each group version. */
static void on_retry(void *data)
{
	struct feed *feed = data;
	double now = clock_now();
	LIST_EACH (feed->peers, node) {
		struct feed *peer = LIST_ENTRY(node, struct feed, node);
		if (peer == feed || peer->phase != FEED_WAITING || now < (peer->waits_from + peer->next_try) / 2)
			continue;
		loop_timer_stop(loop_of(peer), &peer->retry);
		look_up(peer);
	}
	look_up(feed);
}

/* A 404 on a list: the server does not serve the kind any more, or not yet. Discovery decides which, after a wait,
 * since it may still say that the kind is there. */
static void run_absent(void *data)
{
	struct feed *feed = data;
	struct reflector_report report = {0};
	for (size_t i = 0; i < feed->scope_count; i++) {
		reflector_report(feed->scopes[i].reflector, &report);
		if (report.state == REFLECTOR_STOPPED)
			break;
	}
	end_reflectors(feed);
	discovery_forget(feed->cluster->discovery, feed->spec.api_version);
	look_up_later(feed, &report.err);
}

void feed_start(struct feed *feed)
{
	if (feed->phase != FEED_IDLE)
		return;
	feed->started_at = clock_now();
	look_up(feed);
}
