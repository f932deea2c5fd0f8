/* apply: one delta into a store, and what that means for handlers. Deltas in; store changes and notifications out.
 *
 * Where an own write is ahead of the watch (overlay.h), the store shows that, and stays; deltas then change the key's
 * history, which they are judged by, and which alone handlers are told.
 *
 * The store decides what an event was: a PUT of an unknown key is an add, whatever the server called it; an equal
 * resourceVersion is a duplicate, an older one never takes an object back, another uid is a delete and an add.
 *
 * A REPLACE is one step for who looks, but is carried out in turns: the store is in its new state before the first
 * notification; then come deletes, then adds and updates in list order. It is compared with the store first, which
 * changes nothing there, so that what has not changed, which is usually all of it, costs nobody anything. */
#ifndef PERILUNE_CACHE_APPLY_H
#define PERILUNE_CACHE_APPLY_H

#include "cache/listener.h"
#include "cache/overlay.h"
#include "cache/queue.h"
#include "cache/store.h"

/* In this order. */
enum replace_phase {
	REPLACE_NONE,
	REPLACE_COMPARING, /* drops from the delta what the store has already */
	REPLACE_MISSING,   /* looks for what the list did not name */
	REPLACE_CHANGING,  /* puts what is left of the delta into the store */
	REPLACE_REMOVING,  /* takes out what is missing */
	REPLACE_FILING,    /* the store is as it shall be; its indexes follow */
	REPLACE_TELLING_GONE,
	REPLACE_TELLING_RECREATED, /* of what has another uid, the deletes */
	REPLACE_TELLING
};

/* The REPLACE under way. */
struct replace {
	enum replace_phase phase;
	size_t objects, bytes;      /* of the store before */
	size_t next;                /* of what the phase goes through */
	size_t kept;                /* COMPARING: objects of the delta that stay */
	struct store_cursor cursor; /* MISSING */
	struct object **before;     /* what each of the delta's objects took the place of; owned; from CHANGING on */
	struct object **gone;       /* borrowed from the store; owned once it has been removed */
	size_t gone_count, gone_capacity, removed;
	bool lifted;    /* own writes were shown, and were taken out of the store to compare it */
	bool recreated; /* one of the delta's objects has another uid than what it took the place of */
};

struct apply {
	struct store *store;
	struct overlay *overlay;                                             /* of the delta's scope, over that store */
	void (*notify)(void *data, const struct notification *notification); /* borrowed; must not change the store */
	void *data;
	unsigned long duplicates; /* events dropped since the store has that version already */
	unsigned long stale;      /* events dropped since the store is newer */
	struct replace replace;
};

/* Until that time on clock_now's scale, and a little in any case. True when it is done; else it is called again with
 * the same, before anything else happens to the store. initial: adds are of the initial state. delta stays the
 * caller's, but its objects are used up. */
bool apply_delta(struct apply *apply, struct delta *delta, bool initial, double until);
/* The store has left the state before the delta under way, and is not yet as it shall be. */
bool apply_is_torn(const struct apply *apply);
/* Goes on until it is not torn. Tells nothing, and calls no function of an index. */
void apply_mend(struct apply *apply, struct delta *delta);
/* Gives up the delta under way, whether or not it was begun. */
void apply_drop(struct apply *apply, const struct delta *delta);

#endif
