/* apply: one delta into a store, and what that means for handlers. Deltas in; store changes and notifications out.
 *
 * Where an own write is ahead of the watch (overlay.h), the store shows that, and stays; deltas then change the key's
 * history, which they are judged by, and which alone handlers are told.
 *
 * The store decides what an event was: a PUT of an unknown key is an add, whatever the server called it; an equal
 * resourceVersion is a duplicate, an older one never takes an object back, another uid is a delete and an add. A
 * REPLACE is one step: the store is in its new state before the first notification; then come deletes, then adds and
 * updates in list order. */
#ifndef PERILUNE_CACHE_APPLY_H
#define PERILUNE_CACHE_APPLY_H

#include "cache/listener.h"
#include "cache/overlay.h"
#include "cache/queue.h"
#include "cache/store.h"

struct apply {
	struct store *store;
	struct overlay *overlay;                                             /* of the delta's scope, over that store */
	void (*notify)(void *data, const struct notification *notification); /* borrowed; must not change the store */
	void *data;
	unsigned long duplicates; /* events dropped since the store has that version already */
	unsigned long stale;      /* events dropped since the store is newer */
};

/* initial: adds are of the initial state. delta stays the caller's. */
void apply_delta(struct apply *apply, struct delta *delta, bool initial);

#endif
