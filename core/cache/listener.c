#include "cache/listener.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/informer.h"
#include "cache/keymap.h"

ALLOC_TYPE(listener_type, "listener");

#define SHORTEST_RESYNC 1.0

/* One waiting notification. */
struct entry {
	struct list node;
	struct notification notification;
	double since;
};

struct listener {
	struct informer *informer; /* a reference */
	struct listener_options options;
	struct list node; /* in the informer's list, once opened */
	struct list entries;
	size_t depth;
	struct keymap
	    last; /* what an arriving notification of the key is merged with; empty where every event is asked for */
	bool opened;
	bool told;             /* on_ready was, or will be, called, and listener_pop has not found it empty since */
	size_t initial;        /* initial adds that wait or are being handled */
	size_t initial_popped; /* of them, those being handled */
	size_t resyncs;        /* waiting */
	struct loop_job ready;
	struct loop_timer resync;
};

static const char *last_key(const void *item, size_t *length)
{
	const struct entry *entry = item;
	return object_key(entry->notification.object, length);
}

void notification_fini(struct notification *notification)
{
	object_unref(notification->object);
	object_unref(notification->old);
	notification->object = notification->old = NULL;
}

/* The last thing it does is the call: its listener may be freed in it. */
static void run_ready(void *data)
{
	struct listener *listener = data;
	listener->options.on_ready(listener->options.data);
}

static void on_resync(void *data);

struct listener *listener_new(struct informer *informer, const struct listener_options *options)
{
	struct listener *listener = alloc_object(&listener_type, sizeof(*listener));
	listener->informer = informer_ref(informer);
	listener->options = *options;
	list_init(&listener->node);
	list_init(&listener->entries);
	keymap_init(&listener->last, last_key);
	loop_job_init(&listener->ready, run_ready, listener);
	loop_timer_init(&listener->resync, on_resync, listener);
	return listener;
}

void listener_close(struct listener *listener)
{
	informer_detach(listener->informer, listener);
	loop_timer_stop(informer_loop(listener->informer), &listener->resync);
}

static void free_entry(struct entry *entry)
{
	notification_fini(&entry->notification);
	alloc_free(entry);
}

void listener_free(struct listener *listener)
{
	if (!listener)
		return;
	listener_close(listener);
	loop_job_cancel(&listener->ready);
	LIST_EACH (&listener->entries, node)
		free_entry(LIST_ENTRY(node, struct entry, node));
	keymap_fini(&listener->last);
	informer_unref(listener->informer);
	alloc_object_free(&listener_type, listener);
}

static void tell_ready(struct listener *listener)
{
	if (listener->told || !listener->options.on_ready)
		return;
	listener->told = true;
	loop_post(informer_loop(listener->informer), &listener->ready);
}

static void push(struct listener *listener, const struct notification *notification)
{
	struct entry *entry = alloc_zero(sizeof(*entry));
	entry->notification = *notification;
	object_ref(notification->object);
	if (notification->old)
		object_ref(notification->old);
	entry->since = clock_now();
	list_add_tail(&listener->entries, &entry->node);
	listener->depth++;
	listener->initial += notification->initial;
	listener->resyncs += notification->resync;
	if (!listener->options.every_event)
		keymap_put(&listener->last, entry);
	tell_ready(listener);
}

/* An add and its delete: nobody has heard of the object, so nobody needs to. A delete that waits before both stays, and
 * is no longer the last: what comes next can only be an add, which is not merged with it. */
static void cancel_add(struct listener *listener, struct entry *entry)
{
	size_t length;
	const char *key = last_key(entry, &length);
	keymap_remove(&listener->last, key, length);
	list_remove(&entry->node);
	listener->depth--;
	listener->initial -= entry->notification.initial;
	free_entry(entry);
}

static void set_object(struct entry *entry, struct object *object)
{
	object_ref(object);
	object_unref(entry->notification.object);
	entry->notification.object = object;
}

static void update_waiting(struct listener *listener, struct entry *entry, const struct notification *arrived)
{
	set_object(entry, arrived->object);
	if (entry->notification.resync && !arrived->resync) {
		entry->notification.resync = false;
		listener->resyncs--;
	}
}

static void turn_to_delete(struct listener *listener, struct entry *entry, const struct notification *arrived)
{
	struct notification *waiting = &entry->notification;
	set_object(entry, arrived->object);
	object_unref(waiting->old);
	listener->resyncs -= waiting->resync;
	waiting->old = NULL;
	waiting->resync = false;
	waiting->type = NOTIFY_DELETE;
	waiting->final_state_unknown = arrived->final_state_unknown;
}

/* The table of the header, seen from the entry that waits last. */
static void merge(struct listener *listener, struct entry *entry, const struct notification *arrived)
{
	switch (entry->notification.type) {
	case NOTIFY_ADD:
		if (arrived->type == NOTIFY_DELETE)
			cancel_add(listener, entry);
		else
			set_object(entry, arrived->object);
		break;
	case NOTIFY_UPDATE:
		if (arrived->type == NOTIFY_DELETE)
			turn_to_delete(listener, entry, arrived);
		else
			update_waiting(listener, entry, arrived);
		break;
	case NOTIFY_DELETE:
		push(listener, arrived);
		break;
	}
}

void listener_notify(struct listener *listener, const struct notification *notification)
{
	size_t length;
	const char *key = object_key(notification->object, &length);
	struct entry *entry = keymap_get(&listener->last, key, length);
	if (entry)
		merge(listener, entry, notification);
	else
		push(listener, notification);
}

static bool push_initial(void *data, struct object *object)
{
	struct notification notification = {.type = NOTIFY_ADD, .object = object, .initial = true};
	push(data, &notification);
	return true;
}

static double resync_period(const struct listener *listener)
{
	return fmax(listener->options.resync, SHORTEST_RESYNC);
}

void listener_take_stored(struct listener *listener)
{
	informer_each_told(listener->informer, push_initial, listener);
}

void listener_open(struct listener *listener)
{
	struct informer *informer = listener->informer;
	if (listener->opened)
		return;
	listener->opened = true;
	listener_take_stored(listener);
	informer_attach(informer, listener);
	if (listener->options.resync > 0)
		loop_timer_start(informer_loop(informer), &listener->resync, resync_period(listener));
}

static bool push_resync(void *data, struct object *object)
{
	struct notification notification = {.type = NOTIFY_UPDATE, .object = object, .old = object, .resync = true};
	listener_notify(data, &notification);
	return true;
}

/* Where nothing is merged, a handler that is slower than its period must not be given ever more: a round is left out
 * while the last one waits. */
static void on_resync(void *data)
{
	struct listener *listener = data;
	struct informer *informer = listener->informer;
	bool waits = listener->options.every_event && listener->resyncs;
	if (informer_has_synced(informer) && !waits)
		informer_each_told(informer, push_resync, listener);
	loop_timer_start(informer_loop(informer), &listener->resync, resync_period(listener));
}

/* What was popped is not merged with. */
static void forget(struct listener *listener, const struct entry *entry)
{
	size_t length;
	const char *key = last_key(entry, &length);
	if (keymap_get(&listener->last, key, length) == entry)
		keymap_remove(&listener->last, key, length);
}

bool listener_pop(struct listener *listener, struct notification *out)
{
	struct list *node = list_pop(&listener->entries);
	if (!node) {
		listener->told = false;
		return false;
	}
	struct entry *entry = LIST_ENTRY(node, struct entry, node);
	forget(listener, entry);
	*out = entry->notification;
	alloc_free(entry);
	listener->depth--;
	listener->initial_popped += out->initial;
	listener->resyncs -= out->resync;
	return true;
}

void listener_done(struct listener *listener)
{
	if (!listener->initial_popped)
		return;
	listener->initial_popped--;
	listener->initial--;
}

bool listener_has_synced(const struct listener *listener)
{
	return listener->opened && informer_has_synced(listener->informer) && !listener->initial;
}

size_t listener_depth(const struct listener *listener)
{
	return listener->depth;
}

double listener_age(const struct listener *listener)
{
	if (list_is_empty(&listener->entries))
		return 0;
	return clock_now() - LIST_ENTRY(listener->entries.next, struct entry, node)->since;
}

struct list *listener_node(struct listener *listener)
{
	return &listener->node;
}

struct listener *listener_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct listener, node);
}
