#include "cache/informer.h"

#include <string.h>

#include "base/alloc.h"
#include "cache/informer_private.h"

ALLOC_TYPE(informer_type, "informer");

static void run_changes(void *data);

static struct loop *loop_of(const struct informer *informer)
{
	return informer->feed->cluster->loop;
}

struct loop *informer_loop(const struct informer *informer)
{
	return loop_of(informer);
}

struct informer *informer_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct informer, node);
}

struct informer *informer_new(struct cluster *cluster, struct list *feeds, const struct informer_spec *from,
			      struct err *err)
{
	struct spec spec;
	struct feed *feed = feed_new(cluster, feeds, from, err);
	if (!feed)
		return NULL;
	if (spec_init(&spec, from, err)) {
		feed_unref(feed);
		return NULL;
	}
	struct informer *informer = alloc_object(&informer_type, sizeof(*informer));
	informer->count = 1;
	informer->feed = feed;
	informer->spec = spec;
	list_add_tail(&feed->informers, &informer->node);
	list_init(&informer->listeners);
	list_init(&informer->observers);
	loop_job_init(&informer->change_job, run_changes, informer);
	return informer;
}

/* Observers hear of it from a job of their own, so that they may free anything. */
void informer_changed(struct informer *informer)
{
	loop_post(loop_of(informer), &informer->change_job);
}

static void leave_feed(struct informer *informer)
{
	list_remove(&informer->node);
	if (list_is_empty(&informer->feed->informers))
		feed_stop(informer->feed);
}

void informer_stop(struct informer *informer)
{
	if (informer->stopped)
		return;
	informer->stopped = true;
	leave_feed(informer);
	informer_changed(informer);
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
	store_remove_owned(informer->feed->store, informer); /* others may go on with it */
	feed_unref(informer->feed);
	spec_fini(&informer->spec);
	alloc_object_free(&informer_type, informer);
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
	list_remove(listener_walk_node(listener));
}

void informer_begin_walk(struct informer *informer, struct listener *listener)
{
	feed_begin_walk(informer->feed, listener);
}

void informer_settle(struct informer *informer)
{
	feed_settle(informer->feed);
}

void informer_notify(struct informer *informer, const struct notification *notification)
{
	LIST_EACH (&informer->listeners, node)
		listener_notify(listener_of_node(node), notification);
}

/* What is stored there is of before the listeners were told anything. */
void informer_join(struct informer *informer, struct feed *feed)
{
	struct feed *before = informer->feed;
	store_move_indexes(before->store, feed->store);
	leave_feed(informer);
	informer->feed = feed_ref(feed);
	list_add_tail(&feed->informers, &informer->node);
	struct list walking, listening;
	list_init(&walking);
	list_init(&listening);
	list_move(&walking, &before->walks);
	list_move(&listening, &informer->listeners);
	LIST_EACH (&walking, node)
		listener_take_stored(listener_of_walk_node(node));
	LIST_EACH (&listening, node)
		listener_take_stored(listener_of_node(node));
	feed_unref(before);
	informer_changed(informer);
}

void informer_need(struct informer *informer)
{
	informer->needed++;
}

void informer_unneed(struct informer *informer)
{
	informer->needed--;
}

void informer_start(struct informer *informer)
{
	informer->started = true;
	feed_start(informer->feed);
}

bool informer_started(const struct informer *informer)
{
	return informer->started;
}

bool informer_is_stopped(const struct informer *informer)
{
	return informer->stopped;
}

bool informer_leads(const struct informer *informer)
{
	return informer->feed->informers.next == &informer->node;
}

bool informer_has_synced(const struct informer *informer)
{
	return informer->feed->synced;
}

bool informer_is_faithful(const struct informer *informer)
{
	const struct feed *feed = informer->feed;
	if (!feed->synced || informer->stopped || feed->phase != FEED_RUNNING || feed->projection.transform)
		return false;
	for (size_t i = 0; i < feed->scope_count; i++)
		if (feed->scopes[i].stale)
			return false;
	return true;
}

bool informer_is_whole(const struct informer *informer)
{
	const struct projection *projection = &informer->feed->projection;
	if (projection->metadata_only || projection->keep)
		return false;
	for (size_t i = 0; i < projection->drop_count; i++)
		if (strcmp(json_path_text(projection->drop[i]), informer_usual_drop[0]) != 0)
			return false;
	return true;
}

/* Shown by an object that has it all. */
static bool keeps_finalizers(const struct projection *projection, struct buf *scratch)
{
	static const char text[] =
	    "{\"metadata\":{\"resourceVersion\":\"1\",\"deletionTimestamp\":\"-\",\"finalizers\":[\"-\"]}}";
	struct err err;
	struct outline probe = outline_of((struct json_slice){text, sizeof(text) - 1});
	if (projection_apply(projection, "v1", "Probe", &probe, scratch, &err))
		return false;
	struct json_slice metadata = json_get((struct json_slice){scratch->data, scratch->length}, "metadata");
	struct json_iter finalizers = json_iterate(json_get(metadata, "finalizers"));
	return json_get(metadata, "resourceVersion").data && json_get(metadata, "deletionTimestamp").data &&
	       json_next(&finalizers);
}

bool informer_keeps_finalizers(const struct informer *informer)
{
	const struct projection *projection = &informer->feed->projection;
	if (projection->transform) /* nobody can say what it will do */
		return false;
	struct buf scratch;
	buf_init(&scratch, 0);
	bool keeps = keeps_finalizers(projection, &scratch);
	buf_fini(&scratch);
	return keeps;
}

struct store *informer_store(struct informer *informer)
{
	feed_mend(informer->feed);
	return informer->feed->store;
}

struct object *informer_next_told(const struct informer *informer, struct store_cursor *cursor)
{
	return feed_next_told(informer->feed, cursor);
}

void informer_each_hidden(const struct informer *informer, store_visit_fn on_object, void *data)
{
	feed_each_hidden(informer->feed, on_object, data);
}

const char *informer_kind(const struct informer *informer)
{
	if (informer->feed->resource)
		return informer->feed->resource->kind;
	return informer->spec.kind ? informer->spec.kind : informer->spec.resource;
}

const char *informer_plural(const struct informer *informer)
{
	return informer->spec.kind ? NULL : informer->spec.resource;
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
	return informer->feed->resource;
}

const char *informer_label_selector(const struct informer *informer)
{
	return informer->spec.label_selector;
}

const char *informer_field_selector(const struct informer *informer)
{
	return informer->spec.field_selector;
}

const char *informer_api_version(const struct informer *informer)
{
	return informer->spec.api_version;
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
	const struct feed *feed = informer->feed;
	struct reflector_report report;
	if (i >= feed->scope_count || !feed->scopes[i].reflector)
		return "";
	reflector_report(feed->scopes[i].reflector, &report);
	return report.version;
}
