/* The informer's inside, shared by informer.c and informer_report.c. */
#ifndef PERILUNE_CACHE_INFORMER_PRIVATE_H
#define PERILUNE_CACHE_INFORMER_PRIVATE_H

#include "base/backoff.h"
#include "cache/apply.h"
#include "cache/informer.h"
#include "cache/spec.h"
#include "kube/discovery.h"

enum informer_phase {
	INFORMER_IDLE,
	INFORMER_LOOKING, /* lookup is set */
	INFORMER_WAITING, /* retry is active; then it looks again */
	INFORMER_RUNNING, /* resource and the reflectors are set */
	INFORMER_STOPPED
};

/* One reflector's part of the cache. */
struct scope {
	struct informer *informer;
	struct reflector *reflector; /* NULL unless RUNNING */
	const char *namespace;       /* borrowed from the spec; NULL for all */
	bool listed;                 /* its first list is applied */
};

struct informer {
	unsigned count;
	struct cluster *cluster;
	struct spec spec;
	struct projection projection;

	enum informer_phase phase;
	const struct resource *resource; /* the last that was found */
	struct discovery_lookup *lookup;
	struct backoff backoff; /* of look-ups */
	struct loop_timer retry;
	double next_try;
	unsigned attempts; /* of look-ups; 0 while RUNNING */
	struct err err;    /* of the last look-up or the 404 that led to it */

	struct scope *scopes; /* made when the kind is first found */
	size_t scope_count, listed_count;
	struct reflector_counts past; /* of reflectors that are gone */
	struct queue queue;
	struct loop_job apply_job; /* waits if and only if the queue is not empty */
	struct apply apply;
	struct store *store;
	struct list listeners;
	bool synced; /* once true, for good */
	double started_at, synced_at;

	struct list observers;
	struct loop_job change_job, absent_job;
};

#endif
