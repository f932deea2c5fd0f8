/* reflector: the state of one resource in one scope, then its changes, for ever, through every fault. Events in order
 * out, into a queue.
 *
 * It asks for one stream that begins with the state (a watch-list); where the server has none, or a page size was asked
 * for, it makes a LIST and then a WATCH.
 *
 * The state machine of the semantics' table; every state's failure move stands in reflector.c beside it. */
#ifndef PERILUNE_CACHE_REFLECTOR_H
#define PERILUNE_CACHE_REFLECTOR_H

#include <stdbool.h>

#include "cache/projection.h"
#include "cache/queue.h"
#include "kube/cluster.h"
#include "kube/resource.h"

enum reflector_state {
	REFLECTOR_STOPPED,
	REFLECTOR_CONNECTING, /* LIST or watch-list sent, no answer yet */
	REFLECTOR_LISTING,    /* pages coming in */
	REFLECTOR_RECEIVING,  /* a watch-list's initial state coming in */
	REFLECTOR_WATCHING,   /* WATCH sent or streaming */
	REFLECTOR_WAITING     /* backing off, or told to wait */
};

/* Why it listed or watched again. */
enum reflector_cause {
	REFLECTOR_ENDED,     /* the stream ended as streams do */
	REFLECTOR_EXPIRED,   /* the resourceVersion was too old */
	REFLECTOR_THROTTLED, /* 429 */
	REFLECTOR_STATUS,    /* any other status */
	REFLECTOR_BROKEN,    /* no connection, or it broke off */
	REFLECTOR_SILENT,    /* nothing came any more */
	REFLECTOR_MALFORMED, /* what came was no answer */
	REFLECTOR_CAUSES
};
const char *reflector_cause_name(enum reflector_cause cause); /* "expired" … */

/* What has happened so far. */
struct reflector_counts {
	unsigned long lists, watches;             /* LISTs and watch-lists begun; WATCHes and watch-lists */
	unsigned long bookmarks, skipped;         /* skipped: of another kind or namespace */
	unsigned long relists[REFLECTOR_CAUSES];  /* lists after the first, by why */
	unsigned long restarts[REFLECTOR_CAUSES]; /* watches that went on where the one before had ended */
	double last_event_at, last_bookmark_at;   /* clock_now() scale; 0 before the first */
};
/* Sums, and the later of the times. */
void reflector_counts_add(struct reflector_counts *to, const struct reflector_counts *from);

struct reflector_options {
	struct cluster *cluster;
	const struct resource *resource;
	const struct projection *projection;
	const char *namespace;      /* NULL: all; borrowed for the reflector's life, as all here */
	const char *label_selector; /* NULL: none */
	const char *field_selector;
	int page_size; /* of LISTs, which then come first; 0: a watch-list, and 500 where it has to be a LIST */
};

struct reflector_events {
	void (*on_delta)(void *data, struct delta *delta); /* taken */
	/* The stored object of this uid and resourceVersion, borrowed; NULL when there is none. A relist then keeps it,
	 * and makes no new one. May be NULL. */
	struct object *(*on_known)(void *data, const struct json_meta *meta);
	void (*on_object)(void *data, struct object *object); /* one that was made of what came. May be NULL */
	void (*on_change)(void *data);                        /* state, progress or error changed */
	void (*on_absent)(void *data); /* 404: the kind may be gone; the reflector has stopped itself */
};

/* Why it is where it is; for the barrier's report. */
struct reflector_report {
	enum reflector_state state;
	int page;              /* LISTING: from 1 */
	size_t objects, bytes; /* of the present or last list or initial state */
	unsigned attempts;     /* failures since the last success */
	double next_try;       /* clock_now() scale; WAITING only */
	struct err err; /* the last failure, a 403 with the rule that is missing; message "" when there is none since
			   the last success */
	const char *version; /* resourceVersion; borrowed */
	struct reflector_counts counts;
	bool streaming;    /* WATCHING: the server has answered */
	bool watch_failed; /* err is of the WATCH, not of the LIST */
};

struct reflector;
struct reflector *reflector_new(const struct reflector_options *options, const struct reflector_events *events,
				void *data);
void reflector_start(struct reflector *reflector);
void reflector_free(struct reflector *reflector); /* ends its requests at once; no event after it */
void reflector_report(const struct reflector *reflector, struct reflector_report *out);

#endif
