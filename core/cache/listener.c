#include "cache/listener.h"

#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/informer.h"
#include "cache/keymap.h"

ALLOC_TYPE(listener_type, "listener");

#define SHORTEST_RESYNC 1.0

/* Between two looks at the clock. */
#define STRIDE 256

/* One waiting notification, or NULL as its object where it was cancelled. */
struct slot {
	struct object *object, *old;
	uint32_t since; /* milliseconds, of now_of */
	uint8_t type;
	bool initial : 1, resync : 1, final_state_unknown : 1;
};

#define CHUNK_SLOTS 42 /* a chunk takes 1,032 bytes */
struct chunk {
	struct list node;
	unsigned begin, end; /* those in use */
	struct slot slots[CHUNK_SLOTS];
};

/* What is being taken from the store. */
enum walk { WALK_NONE, WALK_INITIAL, WALK_RESYNC };

struct listener {
	struct informer *informer; /* a reference */
	struct listener_options options;
	struct list node;   /* in the informer's list, once all of the initial state has been taken */
	struct list chunks; /* one at least once something came; the first slot in use is not cancelled */
	size_t depth;
	struct keymap last; /* slots: what an arriving notification of the key is merged with; empty where every event
			       is asked for */
	bool opened;
	bool told;             /* on_ready was, or will be, called, and listener_pop has not found it empty since */
	size_t initial;        /* initial adds that wait or are being handled */
	size_t initial_popped; /* of them, those being handled */
	size_t resyncs;        /* waiting */
	enum walk walk;
	struct list walk_node; /* in the feed's list if and only if it walks */
	bool walks_on;         /* cursor is where it is */
	struct store_cursor cursor;
	struct loop_job ready;
	struct loop_timer resync;
};

static uint32_t now_of(void)
{
	return (uint32_t)(uint64_t)(clock_now() * 1000);
}

static const char *last_key(const void *item, size_t *length)
{
	const struct slot *slot = item;
	return object_key(slot->object, length);
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
	list_init(&listener->walk_node);
	list_init(&listener->chunks);
	keymap_init(&listener->last, last_key);
	loop_job_init(&listener->ready, run_ready, listener);
	loop_timer_init(&listener->resync, on_resync, listener);
	return listener;
}

static void detach(struct listener *listener)
{
	informer_detach(listener->informer, listener);
	loop_timer_stop(informer_loop(listener->informer), &listener->resync);
	listener->walk = WALK_NONE;
}

void listener_close(struct listener *listener)
{
	if (listener->walk == WALK_INITIAL)
		informer_settle(listener->informer);
	detach(listener);
}

static void free_chunk(struct chunk *chunk)
{
	for (unsigned i = chunk->begin; i < chunk->end; i++) {
		object_unref(chunk->slots[i].object);
		object_unref(chunk->slots[i].old);
	}
	alloc_free(chunk);
}

static bool free_some(void *object, double until)
{
	struct listener *listener = object;
	for (struct list *node; (node = list_pop(&listener->chunks));) {
		free_chunk(LIST_ENTRY(node, struct chunk, node));
		if (clock_now() >= until)
			return false;
	}
	alloc_object_free(&listener_type, listener);
	return true;
}

void listener_free(struct listener *listener)
{
	if (!listener)
		return;
	struct loop *loop = informer_loop(listener->informer);
	detach(listener);
	loop_job_cancel(&listener->ready);
	keymap_fini(&listener->last);
	informer_unref(listener->informer);
	loop_free_slowly(loop, free_some, listener);
}

static void tell_ready(struct listener *listener)
{
	if (listener->told || !listener->options.on_ready)
		return;
	listener->told = true;
	loop_post(informer_loop(listener->informer), &listener->ready);
}

static struct chunk *first_chunk(const struct listener *listener)
{
	return list_is_empty(&listener->chunks) ? NULL : LIST_ENTRY(listener->chunks.next, struct chunk, node);
}

static struct slot *add_slot(struct listener *listener)
{
	struct chunk *chunk = LIST_ENTRY(listener->chunks.prev, struct chunk, node);
	if (list_is_empty(&listener->chunks) || chunk->end == CHUNK_SLOTS) {
		chunk = alloc_zero(sizeof(*chunk));
		list_add_tail(&listener->chunks, &chunk->node);
	}
	return &chunk->slots[chunk->end++];
}

/* Leaves the first slot; the last chunk stays for what comes. */
static void leave_slot(struct listener *listener)
{
	struct chunk *chunk = first_chunk(listener);
	if (++chunk->begin < chunk->end)
		return;
	chunk->begin = chunk->end = 0;
	if (chunk->node.next == &listener->chunks)
		return;
	list_remove(&chunk->node);
	alloc_free(chunk);
}

/* NULL when nothing waits. */
static struct slot *first_slot(const struct listener *listener)
{
	struct chunk *chunk = first_chunk(listener);
	return chunk && chunk->begin < chunk->end ? &chunk->slots[chunk->begin] : NULL;
}

static void skip_cancelled(struct listener *listener)
{
	for (const struct slot *slot; (slot = first_slot(listener)) && !slot->object;)
		leave_slot(listener);
}

static void push(struct listener *listener, const struct notification *notification, uint32_t since)
{
	struct slot *slot = add_slot(listener);
	*slot = (struct slot){
	    .object = object_ref(notification->object),
	    .old = notification->old ? object_ref(notification->old) : NULL,
	    .since = since,
	    .type = (uint8_t)notification->type,
	    .initial = notification->initial,
	    .resync = notification->resync,
	    .final_state_unknown = notification->final_state_unknown,
	};
	listener->depth++;
	listener->initial += notification->initial;
	listener->resyncs += notification->resync;
	if (!listener->options.every_event)
		keymap_put(&listener->last, slot);
	tell_ready(listener);
}

/* An add and its delete: nobody has heard of the object, so nobody needs to. A delete that waits before both stays, and
 * is no longer the last: what comes next can only be an add, which is not merged with it. */
static void cancel_add(struct listener *listener, struct slot *slot)
{
	size_t length;
	const char *key = last_key(slot, &length);
	keymap_remove(&listener->last, key, length);
	listener->depth--;
	listener->initial -= slot->initial;
	object_unref(slot->object);
	slot->object = NULL;
	skip_cancelled(listener);
}

static void set_object(struct slot *slot, struct object *object)
{
	object_ref(object);
	object_unref(slot->object);
	slot->object = object;
}

static void update_waiting(struct listener *listener, struct slot *slot, const struct notification *arrived)
{
	set_object(slot, arrived->object);
	if (slot->resync && !arrived->resync) {
		slot->resync = false;
		listener->resyncs--;
	}
}

static void turn_to_delete(struct listener *listener, struct slot *slot, const struct notification *arrived)
{
	set_object(slot, arrived->object);
	object_unref(slot->old);
	listener->resyncs -= slot->resync;
	slot->old = NULL;
	slot->resync = false;
	slot->type = NOTIFY_DELETE;
	slot->final_state_unknown = arrived->final_state_unknown;
}

/* The table of the header, seen from the slot that waits last. */
static void merge(struct listener *listener, struct slot *slot, const struct notification *arrived, uint32_t since)
{
	switch ((enum notification_type)slot->type) {
	case NOTIFY_ADD:
		if (arrived->type == NOTIFY_DELETE)
			cancel_add(listener, slot);
		else
			set_object(slot, arrived->object);
		break;
	case NOTIFY_UPDATE:
		if (arrived->type == NOTIFY_DELETE)
			turn_to_delete(listener, slot, arrived);
		else
			update_waiting(listener, slot, arrived);
		break;
	case NOTIFY_DELETE:
		push(listener, arrived, since);
		break;
	}
}

static void take(struct listener *listener, const struct notification *notification, uint32_t since)
{
	size_t length;
	const char *key = object_key(notification->object, &length);
	struct slot *slot = keymap_get(&listener->last, key, length);
	if (slot)
		merge(listener, slot, notification, since);
	else
		push(listener, notification, since);
}

void listener_notify(struct listener *listener, const struct notification *notification)
{
	take(listener, notification, now_of());
}

/* --- what is taken from the store --- */

struct walking {
	struct listener *listener;
	uint32_t since;
};

static bool take_stored(void *data, struct object *object)
{
	const struct walking *walking = data;
	bool initial = walking->listener->walk == WALK_INITIAL;
	struct notification notification = {
	    .type = initial ? NOTIFY_ADD : NOTIFY_UPDATE,
	    .object = object,
	    .old = initial ? NULL : object,
	    .initial = initial,
	    .resync = !initial,
	};
	take(walking->listener, &notification, walking->since);
	return true;
}

static bool take_some(struct listener *listener)
{
	struct walking walking = {listener, now_of()};
	struct object *object = NULL;
	for (int i = 0; i < STRIDE && (object = informer_next_told(listener->informer, &listener->cursor)); i++)
		take_stored(&walking, object);
	if (!object)
		informer_each_hidden(listener->informer, take_stored, &walking);
	return !object;
}

static void end_walk(struct listener *listener)
{
	if (listener->walk == WALK_INITIAL)
		informer_attach(listener->informer, listener);
	list_remove(&listener->walk_node);
	listener->walk = WALK_NONE;
}

bool listener_walk(struct listener *listener, double until)
{
	if (!listener->walks_on)
		listener->cursor = store_begin(informer_store(listener->informer), NULL);
	listener->walks_on = true;
	do {
		if (take_some(listener)) {
			end_walk(listener);
			return true;
		}
	} while (clock_now() < until);
	return false;
}

static void begin_walk(struct listener *listener, enum walk walk)
{
	listener->walk = walk;
	listener->walks_on = false;
	informer_begin_walk(listener->informer, listener);
}

void listener_take_stored(struct listener *listener)
{
	informer_detach(listener->informer, listener);
	begin_walk(listener, WALK_INITIAL);
}

static double resync_period(const struct listener *listener)
{
	return fmax(listener->options.resync, SHORTEST_RESYNC);
}

void listener_open(struct listener *listener)
{
	struct informer *informer = listener->informer;
	if (listener->opened)
		return;
	listener->opened = true;
	begin_walk(listener, WALK_INITIAL);
	if (listener->options.resync > 0)
		loop_timer_start(informer_loop(informer), &listener->resync, resync_period(listener));
}

/* Where nothing is merged, a handler that is slower than its period must not be given ever more: a round is left out
 * while the last one waits. */
static void on_resync(void *data)
{
	struct listener *listener = data;
	struct informer *informer = listener->informer;
	bool waits = listener->walk || (listener->options.every_event && listener->resyncs);
	loop_timer_start(informer_loop(informer), &listener->resync, resync_period(listener));
	if (informer_has_synced(informer) && !waits)
		begin_walk(listener, WALK_RESYNC);
}

/* What was popped is not merged with. */
static void forget(struct listener *listener, const struct slot *slot)
{
	size_t length;
	const char *key = last_key(slot, &length);
	if (keymap_get(&listener->last, key, length) == slot)
		keymap_remove(&listener->last, key, length);
}

bool listener_pop(struct listener *listener, struct notification *out)
{
	const struct slot *slot = first_slot(listener);
	if (!slot) {
		listener->told = false;
		return false;
	}
	forget(listener, slot);
	*out = (struct notification){
	    (enum notification_type)slot->type, slot->object, slot->old, slot->initial, slot->resync,
	    slot->final_state_unknown};
	leave_slot(listener);
	skip_cancelled(listener);
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
	return listener->opened && listener->walk != WALK_INITIAL && informer_has_synced(listener->informer) &&
	       !listener->initial;
}

size_t listener_depth(const struct listener *listener)
{
	return listener->depth + (listener->walk ? 1 : 0);
}

double listener_age(const struct listener *listener)
{
	const struct slot *slot = first_slot(listener);
	return slot ? (double)(now_of() - slot->since) / 1000 : 0;
}

struct list *listener_node(struct listener *listener)
{
	return &listener->node;
}

struct listener *listener_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct listener, node);
}

struct list *listener_walk_node(struct listener *listener)
{
	return &listener->walk_node;
}

struct listener *listener_of_walk_node(struct list *node)
{
	return LIST_ENTRY(node, struct listener, walk_node);
}
