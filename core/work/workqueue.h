/* workqueue: keys that wait for a worker, each at most once, and how often each has failed.
 *
 * A key is the store's, "namespace/name" or "name". One that is being worked on and is added again runs once more when
 * it is done; so no key is ever in two workers. A key that waits for a time keeps the earliest that it was given, and
 * an add takes it out of that wait. Of the keys that can be taken, one of low priority is served for each
 * WORKQUEUE_HIGH_RUN of high priority, in each the oldest first. An item exists while its key waits, is worked on, or
 * has failures to remember. O(log n) at worst; passive but for one timer. */
#ifndef PERILUNE_WORK_WORKQUEUE_H
#define PERILUNE_WORK_WORKQUEUE_H

#include "base/metric.h"
#include "net/loop.h"

#define WORKQUEUE_HIGH_RUN 8

enum work_priority { WORK_HIGH, WORK_LOW };

struct workqueue;
struct work_item; /* of one key */

struct workqueue_options {
	const char *name; /* in its metrics; copied */
	double base, max; /* as in workqueue_limit */
	double qps;
	unsigned burst;
	struct metric_registry *metrics; /* outlives the queue */
	/* Something can be taken, which could not be before. Called from the loop, posted; not again until
	 * workqueue_get has found nothing. */
	void (*on_ready)(void *data);
	void *data;
};

struct workqueue *workqueue_new(struct loop *loop, const struct workqueue_options *options);
void workqueue_free(struct workqueue *queue); /* its items too; none may be with a worker */

/* From now on, in seconds: the delay after a key's first failure, doubled with each one, and its limit. qps: a bucket
 * over the delays of all keys, with a burst of 1 at least; 0: none. Failures are what they were. */
void workqueue_limit(struct workqueue *queue, double base, double max, double qps, unsigned burst);

/* The key is to be worked on. A waiting key of low priority that is added with a high one becomes high. One that has
 * failed waits on where the priority is low: what brings it is no news. */
void workqueue_add(struct workqueue *queue, const char *key, size_t length, enum work_priority priority);
/* The same after so many seconds; nothing when it was added to be taken now already. While it is worked on the time
 * runs, and the key waits like any other afterwards. */
void workqueue_add_after(struct workqueue *queue, const char *key, size_t length, enum work_priority priority,
			 double seconds);

/* The next item, which is with its worker from now on; NULL when there is none. */
struct work_item *workqueue_get(struct workqueue *queue);
/* The worker is done with it, well or not: the item waits again where it was added meanwhile, else it may be freed. */
void workqueue_done(struct workqueue *queue, struct work_item *item);
/* For an item that is with a worker, before workqueue_done: counts a failure and adds the key, with the priority it was
 * taken with, after the delay of its failures and of the bucket. Returns the seconds. */
double workqueue_retry(struct workqueue *queue, struct work_item *item);
void workqueue_forget(struct workqueue *queue, struct work_item *item); /* its failures */

const char *work_item_key(const struct work_item *item, size_t *length); /* NUL-terminated */
unsigned work_item_failures(const struct work_item *item);
enum work_priority work_item_priority(const struct work_item *item); /* that it was taken with */
double work_item_taken_at(const struct work_item *item);             /* clock_now's scale */

/* No key is taken in or given out any more; those with workers are done as usual. */
void workqueue_shutdown(struct workqueue *queue);
/* It takes in and gives out again; what waited at the shutdown waits still. */
void workqueue_reopen(struct workqueue *queue);

size_t workqueue_depth(const struct workqueue *queue);   /* that can be taken now */
size_t workqueue_delayed(const struct workqueue *queue); /* that wait for a time */
size_t workqueue_running(const struct workqueue *queue); /* that are with workers */
/* Seconds that the first in line has waited, the longer of both priorities; 0 when there is none. */
double workqueue_age(const struct workqueue *queue);

void workqueue_check(const struct workqueue *queue); /* asserts the invariants, in debug builds */

#endif
