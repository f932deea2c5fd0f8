/* feed: one watch of the API server and the store that it fills. Looks its kind up, runs a reflector for each
 * namespace, applies their deltas in order, and in turns (apply.h). What is under way is finished at once where an own
 * write is noted, where a reader finds a delta half applied, and where a listener is closed before it has taken all.
 *
 * Informers of one textual spec are one informer; whether two texts mean the same, such as kind Pod and resource pods,
 * shows when discovery has answered. So each informer begins with a feed of its own, and one whose kind turns out to be
 * served by a peer joins that one's: nothing has been listed for it yet, so it has only indexes and listeners to bring.
 *
 * Inside core/cache: for informer*.c; factory.c keeps the list of peers. */
#ifndef PERILUNE_CACHE_FEED_H
#define PERILUNE_CACHE_FEED_H

#include "base/backoff.h"
#include "cache/apply.h"
#include "cache/packer.h"
#include "cache/spec.h"
#include "cache/write.h"
#include "kube/discovery.h"
#include "kube/selector.h"

enum feed_phase {
	FEED_IDLE,
	FEED_LOOKING, /* lookup is set */
	FEED_WAITING, /* retry is active; then it looks again */
	FEED_RUNNING, /* resource and the reflectors are set */
	FEED_STOPPED
};

/* One reflector's part of the cache. */
struct scope {
	struct feed *feed;
	struct reflector *reflector; /* NULL unless RUNNING */
	const char *namespace;       /* borrowed from the spec; NULL for all */
	struct overlay overlay;      /* over the feed's store, of the namespace's keys */
	bool listed;                 /* its first list is applied */
	bool stale;                  /* the log knows that the server refuses to tell more */
};

struct feed {
	struct list node; /* among its peers */
	struct list *peers;
	struct list informers; /* that it serves, in the order they came; one at least until it stops */
	unsigned count;        /* informers that hold it, stopped ones too */
	struct cluster *cluster;
	struct spec spec; /* of its first informer */
	struct projection projection;
	struct selector *selector; /* the spec's label selector; NULL for none */

	enum feed_phase phase;
	const struct resource *resource; /* the last that was found */
	struct discovery_lookup *lookup;
	struct backoff backoff; /* of look-ups */
	struct loop_timer retry;
	double waits_from, next_try; /* while WAITING */
	unsigned attempts;           /* of look-ups; 0 while RUNNING */
	struct err err;              /* of the last look-up or the 404 that led to it */
	bool told_parked;            /* the log knows of it */

	struct scope *scopes; /* made when the kind is found */
	size_t scope_count, listed_count;
	struct reflector_counts past; /* of reflectors that are gone */
	struct queue queue;
	struct delta *current;     /* under way; NULL between two */
	bool applying;             /* a function of an index is on the stack, perhaps */
	struct list walks;         /* listeners that take what is stored: after current, and before what is queued */
	struct loop_job apply_job; /* waits if there is something to do; a stopped feed leaves its queue */
	struct apply apply;
	struct store *store;
	struct packer *packer; /* NULL where objects stay raw */
	bool synced;           /* once true, for good */
	double started_at, synced_at;
	struct loop_job absent_job;
};

/* peers: the pool's list. NULL with err. The count is 1. */
struct feed *feed_new(struct cluster *cluster, struct list *peers, const struct informer_spec *spec, struct err *err);
struct feed *feed_ref(struct feed *feed);
void feed_unref(struct feed *feed);
void feed_start(struct feed *feed);
void feed_stop(struct feed *feed); /* ends its requests; the store stays */

/* A new object of its: packed when there is time. */
void feed_pack(const struct feed *feed, struct object *object);
/* Each of the three does nothing while a delta is being applied, as inside a function of an index.
 *
 * All that came is applied at once. A stopped feed applies only what is under way. */
void feed_catch_up(struct feed *feed);
/* What is under way is finished at once: the delta and the walks. */
void feed_settle(struct feed *feed);
/* For who reads the store: it is as before a delta or as after it. Runs no function of an index, so it may be called
 * inside any script. */
void feed_mend(struct feed *feed);
/* The listener is to take what is stored, and no delta comes before it has. A small store's it has at once, where
 * nothing is under way. */
void feed_begin_walk(struct feed *feed, struct listener *listener);
/* What the API answered a write by this host shows in the store at once, where it is of the feed's resource and of what
 * it watches; handlers hear of it from the watch. result: what write_read made of it. */
void feed_note_write(struct feed *feed, const struct write *write, const struct write_result *result);
/* As store_next over all of the store, but each object as the watch told it last, whatever own writes show; then those
 * that they hide. */
struct object *feed_next_told(const struct feed *feed, struct store_cursor *cursor);
void feed_each_hidden(const struct feed *feed, store_visit_fn on_object, void *data);

bool feed_is_needed(const struct feed *feed);  /* one of its informers is */
bool feed_is_awaited(const struct feed *feed); /* it is needed, and has never synced */
/* The server said that there is no such kind, and nobody waits for it. */
bool feed_is_parked(const struct feed *feed);

#endif
