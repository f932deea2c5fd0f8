/* The reflector's inside, shared by reflector.c (states and moves), reflector_initial.c (watch-list), reflector_list.c
 * (LIST), reflector_watch.c (WATCH), reflector_probe.c (versions that went back) and reflector_silence.c (answers that
 * don't come). */
#ifndef PERILUNE_CACHE_REFLECTOR_PRIVATE_H
#define PERILUNE_CACHE_REFLECTOR_PRIVATE_H

#include "base/backoff.h"
#include "base/strmap.h"
#include "cache/reflector.h"
#include "kube/frame.h"
#include "kube/request.h"
#include "json/split.h"

#define VERSION_SIZE (OBJECT_VERSION_MAX + 1)

/* What comes next. Each phase maps its answers to one of these; reflector.c carries it out. */
enum move {
	MOVE_LIST_TRUTH,  /* watch-list or LIST at once, at "" */
	MOVE_LIST_WHOLE,  /* LIST at once, at the resourceVersion first asked, without paging */
	MOVE_LIST_LATER,  /* wait, then watch-list or LIST */
	MOVE_FALL_BACK,   /* LIST at once in place of a watch-list */
	MOVE_WATCH,       /* at once, from the last resourceVersion */
	MOVE_WATCH_LATER, /* wait, then WATCH */
	MOVE_ABSENT       /* nothing; the owner looks the kind up again */
};

/* The list under way, from its first page to its last; or the initial state of a watch-list, which has no pages. */
struct listing {
	struct split *split;        /* of the page under way */
	char asked[VERSION_SIZE];   /* the first page's resourceVersion; "" is the truth */
	char version[VERSION_SIZE]; /* what the first page answered */
	double asked_at;            /* the first page; clock_now's scale */
	int limit;                  /* 0: not paged */
	char *token;                /* of the page under way; NULL on the first */
	int page;                   /* from 1 */
	struct object **objects;    /* owned */
	size_t count, capacity;
	size_t bytes;                  /* of finished pages */
	size_t counted, counted_bytes; /* for the report: they outlive the list */
	bool untidy;                   /* an initial state in which objects changed: places is in use */
	struct strmap places;          /* key to index + 1 in objects, where NULL is one that was deleted */
};

/* The stream under way. */
struct watching {
	struct frame *frame;
	bool initial;      /* the end of a watch-list's initial state has not come yet */
	double initial_at; /* then: when the last object of it came, or the answer; clock_now's scale, as all here */
	bool opened;       /* it was answered with success */
	double opened_at;
	unsigned long events;  /* objects taken that were news; bookmarks are none */
	unsigned bookmarks;    /* those without annotation */
	unsigned long skipped; /* events of another kind or namespace */
	bool moved;            /* the resourceVersion has moved, or was confirmed */
	bool refused;          /* by an ERROR event, or because what came can't be taken */
	enum move move;        /* then, outside an initial state: what comes next */
	bool hopeless;         /* and inside: it would never end */
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
	struct loop_timer guard; /* while something is waited for; reflector_silence.c's */
	struct backoff backoff;
	/* Of 410s alone: a server that is back from a fall has a young watch cache and refuses every version once. The
	 * waits that grew while it was away say nothing about that. */
	struct backoff expired;
	bool spoke; /* the log knows of trouble and not yet of its end */

	char version[VERSION_SIZE]; /* the last seen; "" before */
	bool cut_off;               /* the last WATCH broke off or was not answered: the server may be another now */
	struct request *probe;      /* of the version */
	bool lost;                  /* a LIST at it was refused: the next one asks the truth */
	bool unfit;                 /* watch-lists don't work; the server's to be remembered once a LIST was answered */
	unsigned cut_initials;      /* watch-lists in a row that ended before their initial state did */
	bool paged;                 /* the first list came in pages: so do later ones */
	struct listing list;
	struct watching watch;
	struct buf scratch; /* an object's projection, until it is copied */

	unsigned attempts;
	struct err err;
	bool watch_failed;
	struct reflector_counts counts;
};

/* reflector.c */
void reflector_changed(struct reflector *reflector);
/* Ends the request, if there is one, and moves. err: why, NULL where nothing failed. */
void reflector_move(struct reflector *reflector, enum move move, const struct err *err);
/* The server said when to come back, and kube/request obeys it. */
void reflector_told_to_wait(struct reflector *reflector, const struct err *err, double seconds);
void reflector_clear_error(struct reflector *reflector);
/* The state has come, or goes on: the log hears of it if it had heard of trouble. */
void reflector_recovered(struct reflector *reflector);
/* Of the namespace that was asked for. What is not, or is of another kind, is skipped: counted, and logged now and
 * then. */
bool reflector_is_in_scope(const struct reflector *reflector, const struct json_meta *meta);
void reflector_skip(struct reflector *reflector, const struct json_meta *meta);
/* An item of a list or an event to the object that the cache keeps. NULL with err. */
struct object *reflector_object(struct reflector *reflector, const struct outline *item, const struct json_meta *meta,
				struct err *err);
void reflector_request(struct reflector *reflector, const struct buf *query, bool list,
		       const struct request_events *events, double timeout);
void reflector_add_selectors(const struct reflector *reflector, struct buf *query);

/* reflector_list.c */
void reflector_list(struct reflector *reflector, const char *asked, bool whole); /* begins a list */
void reflector_end_list(struct reflector *reflector); /* drops what came of it; harmless when there is none */
/* Adds to the list what the store has already, or else a new object. -1 with err. */
int reflector_take_item(struct reflector *reflector, const struct outline *item, const struct json_meta *meta,
			struct err *err);
/* The objects go out as one REPLACE; the next stream goes on at the version. */
void reflector_replace(struct reflector *reflector, const char *version);
bool reflector_version_is_too_large(const struct err *err, struct json_slice body);

/* reflector_watch.c */
void reflector_watch(struct reflector *reflector);
void reflector_end_watch(struct reflector *reflector);
/* WATCH with that query and with what all have; initial: a watch-list. */
void reflector_stream(struct reflector *reflector, struct buf *query, bool initial);

/* reflector_initial.c */
bool reflector_begins_with_stream(const struct reflector *reflector); /* a watch-list is what comes first */
void reflector_initial(struct reflector *reflector);                  /* begins a watch-list */
/* An event inside the initial state; 0, or -1 with err as for frame_fn. */
int reflector_initial_event(struct reflector *reflector, const struct frame_event *event, const struct json_meta *meta,
			    struct err *err);
/* The server said no, with a status (body: its Status) or an ERROR event. */
void reflector_initial_refused(struct reflector *reflector, const struct err *err, struct json_slice body);
/* No answer, or it ended before the state did; err NULL: without a reason. */
void reflector_initial_cut(struct reflector *reflector, const struct err *err);
/* A LIST takes its place, for good once that was answered. */
void reflector_initial_give_up(struct reflector *reflector, const struct err *err);

/* reflector_probe.c */
void reflector_probe(struct reflector *reflector); /* of a watch that goes on; lists the truth if the version is lost */
void reflector_end_probe(struct reflector *reflector);

/* reflector_silence.c */
void reflector_guard_init(struct reflector *reflector);
void reflector_guard(struct reflector *reflector); /* the state has changed: how long it may be silent may have too */

#endif
