/* controller: a work queue and its workers. Keys in; reconciles out, at most so many at once, never two of one key.
 *
 * What a reconcile is belongs to the owner: on_work begins one, controller_end ends it and says how it went. Sources
 * (source.h) bring the keys. Nothing is worked on before controller_start; keys wait until then. */
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
	struct list node; /* in the controller's */
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
};

struct controller_options {
	const char *name; /* copied; of its metrics, its log lines and its field manager */
	unsigned workers;
	double base, max, qps; /* as in workqueue_options */
	unsigned burst;
	struct metric_registry *metrics; /* outlives the controller */
	void (*on_work)(void *data, struct work *work);
	void *data;
};

struct controller *controller_new(struct loop *loop, const struct controller_options *options);
void controller_free(struct controller *controller); /* no work may be under way */

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
unsigned controller_workers(const struct controller *controller);
/* The works under way; the current one may end in the body. */
struct list *controller_running(struct controller *controller);
struct work *work_of_node(struct list *node);

#endif
