/* controller: a work queue and its workers. Keys in; reconciles out, at most so many at once, never two of one key.
 *
 * What a reconcile is belongs to whom the controller serves: on_work begins one, controller_end ends it and says how it
 * went. Sources (source.h) bring the keys. Nothing is worked on before controller_start; keys wait until then.
 *
 * It may come to serve another, as when a script is replaced: its keys, their failures and those that wait for a time
 * stay, and what is under way ends where it began. Counted by those it serves or has served. */
#ifndef PERILUNE_WORK_CONTROLLER_H
#define PERILUNE_WORK_CONTROLLER_H

#include "work/workqueue.h"

struct controller;

#define WORK_NAME_MAX 253 /* bytes of a name or namespace, as the API has it */

/* The parts of a key; namespace "" for what is cluster-scoped. */
struct work_key {
	char namespace[WORK_NAME_MAX + 1], name[WORK_NAME_MAX + 1];
};
void work_key_split(const char *key, struct work_key *out); /* longer parts are cut */

/* One reconcile under way. data is the owner's. */
struct work {
	struct controller *controller;
	struct work_item *item;
	void *data;
};

enum work_outcome {
	WORK_DONE,     /* the key's failures are forgotten */
	WORK_AGAIN,    /* the same, and the key comes back after a time */
	WORK_FAILED,   /* comes back after the delay of its failures */
	WORK_CONFLICT, /* the same, but no error: somebody else has written first */
	WORK_TERMINAL, /* an error that no other try would mend: failures are forgotten */
	WORK_BROKEN, /* it was given up from outside: the key comes back at once, and its failures are what they were */
};

/* Whom it serves, and how. */
struct controller_options {
	unsigned workers;
	double base, max, qps; /* as in workqueue_options */
	unsigned burst;
	void (*on_work)(void *data, struct work *work);
	void *data;
};

/* name: of its metrics, its log lines and its field manager; copied. The registry outlives it. The count is 1. */
struct controller *controller_new(struct loop *loop, const char *name, struct metric_registry *metrics);
struct controller *controller_ref(struct controller *controller);
void controller_unref(struct controller *controller); /* the last one frees it: no work may be under way then */

/* From now on work goes there, when it has been started again; also after controller_stop. */
void controller_serve(struct controller *controller, const struct controller_options *options);
bool controller_serves(const struct controller *controller, const void *data);

/* No work begins until it serves another; keys are taken in as before. */
void controller_pause(struct controller *controller);

void controller_start(struct controller *controller); /* again: nothing */
/* No key is taken in or worked on any more; what is under way goes on. */
void controller_stop(struct controller *controller);
bool controller_is_started(const struct controller *controller);

/* The key (NUL-terminated) is to be worked on. version: of the object whose event brings it; NULL when none does. */
void controller_add(struct controller *controller, const char *key, size_t length, enum work_priority priority,
		    const char *version);
void controller_add_after(struct controller *controller, const char *key, size_t length, double seconds);

/* work is dead after it. after: WORK_AGAIN's seconds. Returns those until the next try of the key, 0 where none is
 * planned. May be called within on_work. */
double controller_end(struct work *work, enum work_outcome outcome, double after);

/* What a reconcile has written has this resourceVersion: how a key that comes back by it is told from news. */
void work_wrote(struct work *work, const char *version);
const char *work_key(const struct work *work, size_t *length); /* NUL-terminated */
unsigned work_attempt(const struct work *work);                /* 1 for the first */

const char *controller_name(const struct controller *controller);
const struct workqueue *controller_queue(const struct controller *controller); /* to look at */

#endif
