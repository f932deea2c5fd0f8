/* barrier: waits until a set of informers has synced, and says meanwhile which are late and why.
 *
 * An optional informer is waited for only while nothing goes wrong with it: until its first failure, whatever that is,
 * or until nothing has come in for 10 s. */
#ifndef PERILUNE_CACHE_BARRIER_H
#define PERILUNE_CACHE_BARRIER_H

#include "cache/informer.h"

enum barrier_outcome {
	BARRIER_OPEN, /* all have synced, but for optional ones */
	BARRIER_LATE  /* no progress for as long as allowed */
};

struct barrier;
struct barrier_options {
	double patience; /* seconds without progress (an informer syncing, a page or an object coming in) until
			    BARRIER_LATE; 0: for ever */
	double timeout;  /* seconds in all until BARRIER_LATE; 0: none */
	bool announce; /* log which are late and why, with backoff (first after 2 s, then doubling to 60 s), and when it
			  opens */
	void (*on_done)(void *data,
			enum barrier_outcome outcome); /* once; from a drain. The barrier stays until barrier_free */
	void *data;
};

struct barrier *barrier_new(struct loop *loop, const struct barrier_options *options);
/* Before barrier_start; keeps a reference. Twice is once, and optional then only when it was so each time. */
void barrier_add(struct barrier *barrier, struct informer *informer, bool optional);
void barrier_start(struct barrier *barrier); /* with nothing to wait for it opens too */
void barrier_free(struct barrier *barrier);  /* allowed before it is done: then on_done never comes */
bool barrier_is_open(const struct barrier *barrier);

/* A table for people of all its informers, one line each: label, state, objects, attempts, why. Appended to out. */
bool barrier_holds(const struct barrier *barrier, const struct informer *informer); /* it was added */
void barrier_report(const struct barrier *barrier, struct buf *out);
/* One line naming the late ones and why: "v1/Secret: forbidden: … (missing: list, watch on secrets)". Appended; nothing
 * when open. */
void barrier_late(const struct barrier *barrier, struct buf *out);

#endif
