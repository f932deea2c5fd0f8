/* The reflector's inside, shared by reflector.c (states and moves), reflector_list.c (LIST) and reflector_watch.c
 * (WATCH). */
#ifndef PERILUNE_CACHE_REFLECTOR_PRIVATE_H
#define PERILUNE_CACHE_REFLECTOR_PRIVATE_H

#include "cache/backoff.h"
#include "cache/reflector.h"
#include "kube/frame.h"
#include "kube/request.h"
#include "json/split.h"

#define VERSION_SIZE (OBJECT_VERSION_MAX + 1)

/* What comes next. Each phase maps its answers to one of these; reflector.c carries it out. */
enum move {
	MOVE_LIST,        /* at once, from the last resourceVersion */
	MOVE_LIST_TRUTH,  /* at once, at "" */
	MOVE_LIST_WHOLE,  /* at once, at the resourceVersion first asked, without paging */
	MOVE_LIST_LATER,  /* wait, then LIST */
	MOVE_WATCH,       /* at once, from the last resourceVersion */
	MOVE_WATCH_LATER, /* wait, then WATCH */
	MOVE_ABSENT       /* nothing; the owner looks the kind up again */
};

/* The list under way, from its first page to its last. */
struct listing {
	struct split *split;        /* of the page under way */
	char asked[VERSION_SIZE];   /* the first page's resourceVersion; "" is the truth */
	char version[VERSION_SIZE]; /* what the first page answered */
	int limit;                  /* 0: not paged */
	char *token;                /* of the page under way; NULL on the first */
	int page;                   /* from 1 */
	struct object **objects;    /* owned */
	size_t count, capacity;
	size_t bytes;                  /* of finished pages */
	size_t counted, counted_bytes; /* for the report: they outlive the list */
};

/* The stream under way. */
struct watching {
	struct frame *frame;
	bool opened;          /* it was answered with success */
	double opened_at;     /* clock_now's scale */
	unsigned long events; /* objects taken; bookmarks are none */
	bool moved;           /* the resourceVersion has moved, or was confirmed */
	bool refused;         /* by an ERROR event */
	enum move move;       /* if so: what comes next */
};

/* At any time one of these holds: request is set; timer is active (WAITING); state is STOPPED. */
struct reflector {
	struct reflector_options options;
	struct reflector_events events;
	void *data;
	struct loop *loop;
	bool ended; /* freed by its owner; the memory stays until the drain has ended */

	enum reflector_state state;
	enum move next; /* WAITING: what the timer does */
	struct request *request;
	struct loop_timer timer;
	double next_try;
	struct backoff backoff;
	/* Of 410s alone: a server that is back from a fall has a young watch cache and refuses every version once. The
	 * waits that grew while it was away say nothing about that. */
	struct backoff expired;
	bool spoke; /* the log knows of trouble and not yet of its end */

	char version[VERSION_SIZE]; /* the last seen; "" before */
	bool lost;                  /* a LIST at it was refused: the next one asks the truth */
	bool paged;                 /* the first list came in pages: so do later ones */
	struct listing list;
	struct watching watch;
	struct buf scratch; /* an object's projection, until it is copied */

	unsigned attempts;
	struct err err;
	bool watch_failed;
	unsigned long lists, watches, bookmarks, skipped;
};

/* reflector.c */
void reflector_changed(struct reflector *reflector);
/* Ends the request, if there is one, and moves. err: why, NULL where nothing failed. */
void reflector_move(struct reflector *reflector, enum move move, const struct err *err);
/* The server said when to come back, and kube/request obeys it. */
void reflector_told_to_wait(struct reflector *reflector, const struct err *err, double seconds);
void reflector_clear_error(struct reflector *reflector);
/* An item of a list or an event to the object that the cache keeps. NULL with err. */
struct object *reflector_object(struct reflector *reflector, struct json_slice item, const struct json_meta *meta,
				struct err *err);
void reflector_request(struct reflector *reflector, const struct buf *query, bool list,
		       const struct request_events *events, double timeout);
void reflector_add_selectors(const struct reflector *reflector, struct buf *query);

/* reflector_list.c */
void reflector_list(struct reflector *reflector, const char *asked, bool whole); /* begins a list */
void reflector_end_list(struct reflector *reflector); /* drops what came of it; harmless when there is none */

/* reflector_watch.c */
void reflector_watch(struct reflector *reflector);
void reflector_end_watch(struct reflector *reflector);

#endif
