/* listener: one handler's queue of notifications, in order, merged where the handler does not ask for each.
 *
 * Merging (waiting + arriving): add+update = add of the new; add+delete = nothing; update+update = update from the
 * oldest old to the newest, a resync only when all parts were; update+delete = delete; delete+add = both. So a slow
 * handler holds at most two entries for each object. An entry that was popped is no longer waiting. */
#ifndef PERILUNE_CACHE_LISTENER_H
#define PERILUNE_CACHE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "cache/object.h"

struct informer;
struct listener;

enum notification_type { NOTIFY_ADD, NOTIFY_UPDATE, NOTIFY_DELETE };

struct notification {
	enum notification_type type;
	struct object *object; /* for a delete: the last known one. Owned by whom it was popped by */
	struct object *old;    /* updates only; may be the same object on a resync */
	bool initial, resync, final_state_unknown;
};
void notification_fini(struct notification *notification);

struct listener_options {
	bool every_event;
	double resync; /* seconds between updates from the cache; 0 none; at least 1 */
	void (*on_ready)(
	    void *data); /* the queue is no longer empty; called from a drain, once until listener_pop finds it empty */
	void *data;
};

/* Keeps a reference to the informer. Silent until opened. */
struct listener *listener_new(struct informer *informer, const struct listener_options *options);
/* The store's content becomes adds with initial = true, before anything newer; of a large store in turns. Call once the
 * informer has synced, or earlier: then the first list's items are the initial adds when they come. */
void listener_open(struct listener *listener);
void listener_close(struct listener *listener); /* nothing newer comes; what waits can be popped as before */
void listener_free(struct listener *listener);  /* drops what waits */

bool listener_pop(struct listener *listener, struct notification *out); /* false when empty */
/* The popped one has been handled, well or not. */
void listener_done(struct listener *listener);
/* Opened, the informer has synced, and all of the initial state has been popped and done. */
bool listener_has_synced(const struct listener *listener);
size_t listener_depth(const struct listener *listener); /* waiting; not 0 while it takes from the store */
double listener_age(const struct listener *listener);   /* seconds that the oldest has waited; 0 when none */

/* For informer.c and feed.c only. Takes references of its own. */
void listener_notify(struct listener *listener, const struct notification *notification);
void listener_take_stored(struct listener *listener); /* opened before its informer got this store */
/* Goes on with what the listener takes from the store, until that time on clock_now's scale and a little in any case.
 * True when it has it all; until then the store does not change. */
bool listener_walk(struct listener *listener, double until);
struct list *listener_node(struct listener *listener); /* in the informer's list: it is told what is new */
struct listener *listener_of_node(struct list *node);
struct list *listener_walk_node(struct listener *listener); /* in the feed's list: it takes from the store */
struct listener *listener_of_walk_node(struct list *node);

#endif
