/* queue: deltas between the reflectors and the store, in the order they came. A relist is one delta. */
#ifndef PERILUNE_CACHE_QUEUE_H
#define PERILUNE_CACHE_QUEUE_H

#include <stdbool.h>

#include "base/list.h"
#include "cache/object.h"

enum delta_type {
	DELTA_PUT, /* ADDED or MODIFIED: the server's word is not trusted to tell which, the store is */
	DELTA_DELETE,
	DELTA_REPLACE, /* all objects of one scope */
	DELTA_BOOKMARK /* nothing has changed up to a version */
};

struct delta {
	struct list node;
	enum delta_type type;
	struct object *object;   /* PUT, DELETE; owned */
	struct object **objects; /* REPLACE, in list order; owned */
	size_t count;
	char *namespace; /* REPLACE: the scope, NULL for all; owned */
	bool truth;      /* REPLACE: listed at "", so true even where it is older than the store */
	double asked_at; /* REPLACE: when the list was asked for, on clock_now's scale */
	char *version;   /* REPLACE, BOOKMARK: what has been told up to; NULL where that is not known; owned */
	size_t scope;    /* its reflector's number in the feed, which sets it */
};

struct queue {
	struct list deltas;
	size_t count;
};

void queue_init(struct queue *queue);
void queue_fini(struct queue *queue);                      /* frees what waits */
void queue_push(struct queue *queue, struct delta *delta); /* taken */
struct delta *queue_pop(struct queue *queue);              /* owned by the caller; NULL when empty */

struct delta *delta_new(enum delta_type type);
void delta_free(struct delta *delta);
/* Frees it in turns, each until that time on clock_now's scale, and true when it is freed. */
bool delta_free_some(struct delta *delta, double until);

#endif
