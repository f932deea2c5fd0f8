/* reconciler: one k8s.controller of a script: its work queue and sources (core/work), and the calls of its reconcile
 * function, each a task of its own with a deadline. */
#ifndef PERILUNE_SCRIPT_RECONCILER_H
#define PERILUNE_SCRIPT_RECONCILER_H

#include "script/script.h"
#include "work/source.h"

struct fields;
struct hook;
struct reconciler;

/* One informer that brings keys. */
struct reconciler_source {
	enum source_kind kind;
	struct script_factory *factory;
	struct informer *informer; /* borrowed */
	bool any_owner;
	double resync;
	struct hook *passes; /* owned; NULL: every event counts */
	struct hook *map;    /* owned; of SOURCE_MAP */
	struct fields *seen; /* owned; what passes wants decoded, NULL for whole objects */
	/* passes looks at labels alone: an update that leaves them is refused unasked, unless a deletion has begun. */
	bool only_labels;
};

struct reconciler_options {
	const char *name; /* borrowed for the call */
	struct informer *primary;
	int function; /* taken: a registry reference. Called with key, attempt and deadline; its results are the seconds
			 after which the key comes back, or nil; and an error, or nil */
	unsigned workers;
	double timeout; /* seconds of one reconcile */
	double base, max, qps;
	unsigned burst;
	bool leader;    /* works only while this host leads */
	bool finalizes; /* function patches the primary informer's objects for a finalizer */
};

struct reconciler *reconciler_new(struct script *script, const struct reconciler_options *options);
/* Cancels its calls. The script's end calls it. */
void reconciler_free(struct reconciler *reconciler);
/* Copied; what is owned may be filled in later, before any event comes. */
struct reconciler_source *reconciler_add_source(struct reconciler *reconciler, const struct reconciler_source *source);

/* Begins once all informers of its sources have synced that are waited for, and the host leads where that counts. */
void reconciler_open_ready(struct reconciler *reconciler);
/* Its keys are worked on by this one from now on, in place of the generation before. */
void reconciler_take(struct reconciler *reconciler);
bool reconciler_is_drained(const struct reconciler *reconciler);
/* No new calls; those that run go on. Its sources hear of nothing newer. The keys stay where another generation has
 * taken them. */
void reconciler_stop(struct reconciler *reconciler);
/* No new calls, until another generation takes the keys; they go on coming in. */
void reconciler_pause(struct reconciler *reconciler);
/* The sources whose informers are this factory's bring nothing more. */
void reconciler_drop_factory(struct reconciler *reconciler, const struct script_factory *factory);

/* In the order added. */
void reconciler_each_source(const struct reconciler *reconciler,
			    void (*on_source)(void *data, enum source_kind kind, const struct informer *informer),
			    void *data);

unsigned reconciler_workers(const struct reconciler *reconciler);
bool reconciler_is_leaders(const struct reconciler *reconciler); /* works only while the host leads */
bool reconciler_finalizes(const struct reconciler *reconciler);
struct controller *reconciler_controller(const struct reconciler *reconciler);
struct informer *reconciler_primary(const struct reconciler *reconciler);
struct reconciler *reconciler_of_node(struct list *node);
/* Of this script or another of its host that goes on; NULL where none has that name. */
struct reconciler *reconciler_find(const struct script *script, const char *name);
struct reconciler *reconciler_find_in(const struct script *script, const char *name); /* of this script alone */

#endif
