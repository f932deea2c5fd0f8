#include "cache/informer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/informer_private.h"

ALLOC_TYPE(informer_type, "informer");

/* A turn of applying; the rest waits for the next, so that requests and timers get their turn too. */
#define BUDGET 0.005
#define LONGEST_ABSENT 30.0

static void look_up(struct informer *informer);
static void run_apply(void *data);
static void run_changes(void *data);
static void run_absent(void *data);
static void on_retry(void *data);

static struct loop *loop_of(const struct informer *informer)
{
	return informer->cluster->loop;
}

struct loop *informer_loop(const struct informer *informer)
{
	return loop_of(informer);
}

static void on_notification(void *data, const struct notification *notification)
{
	struct informer *informer = data;
	LIST_EACH (&informer->listeners, node)
		listener_notify(listener_of_node(node), notification);
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

struct informer *informer_new(struct cluster *cluster, const struct informer_spec *from, struct err *err)
{
	struct spec spec;
	struct projection projection;
	if (spec_init(&spec, from, err))
		return NULL;
	if (init_projection(&projection, from, err)) {
		spec_fini(&spec);
		return NULL;
	}
	struct informer *informer = alloc_object(&informer_type, sizeof(*informer));
	informer->count = 1;
	informer->cluster = cluster;
	informer->spec = spec;
	informer->projection = projection;
	informer->store = store_new();
	informer->apply = (struct apply){.store = informer->store, .notify = on_notification, .data = informer};
	queue_init(&informer->queue);
	list_init(&informer->listeners);
	list_init(&informer->observers);
	err_clear(&informer->err);
	loop_timer_init(&informer->retry, on_retry, informer);
	loop_job_init(&informer->apply_job, run_apply, informer);
	loop_job_init(&informer->change_job, run_changes, informer);
	loop_job_init(&informer->absent_job, run_absent, informer);
	return informer;
}

/* Observers hear of it from a job of their own, so that they may free anything. */
static void changed(struct informer *informer)
{
	loop_post(loop_of(informer), &informer->change_job);
}

static void end_reflectors(struct informer *informer)
{
	for (size_t i = 0; i < informer->scope_count; i++) {
		struct reflector_report report;
		if (!informer->scopes[i].reflector)
			continue;
		reflector_report(informer->scopes[i].reflector, &report);
		reflector_counts_add(&informer->past, &report.counts);
		reflector_free(informer->scopes[i].reflector);
		informer->scopes[i].reflector = NULL;
	}
}

void informer_stop(struct informer *informer)
{
	informer->phase = INFORMER_STOPPED;
	if (informer->lookup)
		discovery_cancel(informer->lookup);
	informer->lookup = NULL;
	loop_timer_stop(loop_of(informer), &informer->retry);
	end_reflectors(informer);
	loop_job_cancel(&informer->apply_job);
	loop_job_cancel(&informer->absent_job);
	queue_fini(&informer->queue);
	changed(informer);
}

static void destroy(void *object)
{
	struct informer *informer = object;
	projection_fini(&informer->projection);
	spec_fini(&informer->spec);
	alloc_free(informer->scopes);
	alloc_object_free(&informer_type, informer);
}

struct informer *informer_ref(struct informer *informer)
{
	informer->count++;
	return informer;
}

void informer_unref(struct informer *informer)
{
	if (!informer || --informer->count)
		return;
	informer_stop(informer);
	loop_job_cancel(&informer->change_job);
	store_free(informer->store);
	informer->store = NULL;
	/* Its reflectors still look at its projection, and a callback of its own may be on the stack. */
	loop_free_later(loop_of(informer), destroy, informer);
}

static void run_changes(void *data)
{
	struct informer *informer = informer_ref(data);
	struct list waiting;
	list_init(&waiting);
	list_move(&waiting, &informer->observers);
	for (struct list *node; (node = list_pop(&waiting));) {
		struct informer_observer *observer = LIST_ENTRY(node, struct informer_observer, node);
		list_add_tail(&informer->observers, node);
		observer->on_change(observer->data);
	}
	informer_unref(informer);
}

void informer_observe(struct informer *informer, struct informer_observer *observer)
{
	list_add_tail(&informer->observers, &observer->node);
}

void informer_unobserve(struct informer_observer *observer)
{
	list_remove(&observer->node);
}

void informer_attach(struct informer *informer, struct listener *listener)
{
	list_add_tail(&informer->listeners, listener_node(listener));
}

void informer_detach(struct informer *informer, struct listener *listener)
{
	(void)informer;
	list_remove(listener_node(listener));
}

static void on_delta(void *data, struct delta *delta)
{
	struct informer *informer = ((struct scope *)data)->informer;
	queue_push(&informer->queue, delta);
	loop_post(loop_of(informer), &informer->apply_job);
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
	const struct informer *informer = ((struct scope *)data)->informer;
	char key[2 * 253 + 4];
	size_t length;
	if (!key_of_meta(meta, key, sizeof(key), &length))
		return NULL;
	struct object *object = store_get_key(informer->store, key, length);
	if (!object || !json_string_equals(meta->resource_version, object_version(object)) ||
	    !json_string_equals(meta->uid, object_uid(object)))
		return NULL;
	return object;
}

static void on_change(void *data)
{
	changed(((struct scope *)data)->informer);
}

static void on_absent(void *data)
{
	struct informer *informer = ((struct scope *)data)->informer;
	loop_post(loop_of(informer), &informer->absent_job);
}

static void log_sync(const struct informer *informer)
{
	size_t objects = store_count(informer->store);
	log_info(LOG_FIELDS({"informer", informer->spec.label}), "synced: %zu object%s, %zu bytes, %.2f s", objects,
		 objects == 1 ? "" : "s", store_bytes(informer->store), informer->synced_at - informer->started_at);
}

static void note_listed(struct informer *informer, struct scope *scope)
{
	scope->listed = true;
	if (++informer->listed_count == informer->scope_count) {
		informer->synced = true;
		informer->synced_at = clock_now();
		log_sync(informer);
	}
	changed(informer);
}

/* The scope of a REPLACE, for it is not told otherwise whether this is its first. */
static struct scope *scope_of(struct informer *informer, const struct delta *delta)
{
	if (delta->type != DELTA_REPLACE)
		return NULL;
	for (size_t i = 0; i < informer->scope_count; i++) {
		struct scope *scope = &informer->scopes[i];
		if (!scope->namespace || !delta->namespace || !strcmp(scope->namespace, delta->namespace))
			return scope;
	}
	return NULL;
}

static void apply_one(struct informer *informer, struct delta *delta)
{
	struct scope *scope = scope_of(informer, delta);
	bool first = scope && !scope->listed;
	apply_delta(&informer->apply, delta, first);
	if (first)
		note_listed(informer, scope);
	delta_free(delta);
}

static void run_apply(void *data)
{
	/* An index function may be a script's, and may give up the last handle on this. */
	struct informer *informer = informer_ref(data);
	double until = clock_now() + BUDGET;
	for (struct delta *delta; (delta = queue_pop(&informer->queue));) {
		apply_one(informer, delta);
		if (clock_now() >= until)
			break;
	}
	if (informer->queue.count)
		loop_post(loop_of(informer), &informer->apply_job);
	informer_unref(informer);
}

/* One scope for each namespace; one for all where none was named or the kind has none. */
static void make_scopes(struct informer *informer)
{
	size_t named = informer->resource->namespaced ? informer->spec.namespace_count : 0;
	informer->scope_count = named ? named : 1;
	informer->scopes = alloc_zero(informer->scope_count * sizeof(*informer->scopes));
	for (size_t i = 0; i < informer->scope_count; i++) {
		informer->scopes[i].informer = informer;
		informer->scopes[i].namespace = named ? informer->spec.namespaces[i] : NULL;
	}
}

static void start_reflector(struct informer *informer, struct scope *scope)
{
	static const struct reflector_events events = {on_delta, on_known, on_change, on_absent};
	struct reflector_options options = {
	    .cluster = informer->cluster,
	    .resource = informer->resource,
	    .projection = &informer->projection,
	    .namespace = scope->namespace,
	    .label_selector = informer->spec.label_selector,
	    .field_selector = informer->spec.field_selector,
	    .page_size = informer->spec.page_size,
	};
	scope->reflector = reflector_new(&options, &events, scope);
	reflector_start(scope->reflector);
}

/* The kind is gone, and with it its objects. What is queued comes first. */
static void empty_scopes(struct informer *informer)
{
	for (size_t i = 0; i < informer->scope_count; i++) {
		struct scope *scope = &informer->scopes[i];
		if (!scope->listed)
			continue;
		struct delta *delta = delta_new(DELTA_REPLACE);
		delta->namespace = alloc_string(scope->namespace);
		delta->truth = true;
		on_delta(scope, delta);
	}
}

static void look_up_later(struct informer *informer, const struct err *err)
{
	double wait = fmin(backoff_next(&informer->backoff), LONGEST_ABSENT);
	informer->phase = INFORMER_WAITING;
	informer->attempts++;
	informer->err = *err;
	informer->next_try = clock_now() + wait;
	loop_timer_start(loop_of(informer), &informer->retry, wait);
	if (backoff_speaks(&informer->backoff)) {
		char attempt[16];
		snprintf(attempt, sizeof(attempt), "%u", informer->attempts);
		log_warn(LOG_FIELDS({"informer", informer->spec.label}, {"attempt", attempt}, {"error", err->message}),
			 "looking up the kind failed, asking again in %.1f s", wait);
	}
	changed(informer);
}

static void on_found(void *data, const struct resource *resource, const struct err *err)
{
	struct informer *informer = data;
	informer->lookup = NULL;
	if (!resource) {
		if (!strcmp(err->reason, "NoKind"))
			empty_scopes(informer);
		look_up_later(informer, err);
		return;
	}
	informer->resource = resource;
	informer->phase = INFORMER_RUNNING;
	informer->attempts = 0;
	err_clear(&informer->err);
	if (!informer->scopes)
		make_scopes(informer);
	for (size_t i = 0; i < informer->scope_count; i++)
		start_reflector(informer, &informer->scopes[i]);
	changed(informer);
}

static void look_up(struct informer *informer)
{
	const struct spec *spec = &informer->spec;
	informer->phase = INFORMER_LOOKING;
	informer->lookup = discovery_find(informer->cluster->discovery, spec->api_version, spec->kind, spec->resource,
					  on_found, informer);
	changed(informer);
}

static void on_retry(void *data)
{
	look_up(data);
}

/* A 404 on a list: the server does not serve the kind any more, or not yet. Discovery decides which, after a wait,
 * since it may still say that the kind is there. */
static void run_absent(void *data)
{
	struct informer *informer = data;
	struct reflector_report report = {0};
	for (size_t i = 0; i < informer->scope_count; i++) {
		reflector_report(informer->scopes[i].reflector, &report);
		if (report.state == REFLECTOR_STOPPED)
			break;
	}
	end_reflectors(informer);
	discovery_forget(informer->cluster->discovery, informer->spec.api_version);
	look_up_later(informer, &report.err);
}

void informer_start(struct informer *informer)
{
	if (informer->phase != INFORMER_IDLE)
		return;
	informer->started_at = clock_now();
	look_up(informer);
}

bool informer_started(const struct informer *informer)
{
	return informer->phase != INFORMER_IDLE;
}

bool informer_has_synced(const struct informer *informer)
{
	return informer->synced;
}

struct store *informer_store(struct informer *informer)
{
	return informer->store;
}

const char *informer_api_version(const struct informer *informer)
{
	return informer->spec.api_version;
}

const char *informer_kind(const struct informer *informer)
{
	if (informer->resource)
		return informer->resource->kind;
	return informer->spec.kind ? informer->spec.kind : informer->spec.resource;
}

const char *informer_label(const struct informer *informer)
{
	return informer->spec.label;
}

void informer_rename(struct informer *informer, const char *label)
{
	alloc_free(informer->spec.label);
	informer->spec.label = alloc_string(label);
}

const struct resource *informer_resource(const struct informer *informer)
{
	return informer->resource;
}

size_t informer_namespace_count(const struct informer *informer)
{
	return informer->spec.namespace_count;
}

const char *informer_namespace(const struct informer *informer, size_t i)
{
	return informer->spec.namespaces[i];
}

const char *informer_version(const struct informer *informer, size_t i)
{
	struct reflector_report report;
	if (i >= informer->scope_count || !informer->scopes[i].reflector)
		return "";
	reflector_report(informer->scopes[i].reflector, &report);
	return report.version;
}
