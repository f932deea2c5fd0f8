/* workmeter: the metrics of one work queue, with the names, labels and buckets of controller-runtime.
 *
 * What happens to keys is counted as it happens; how many wait and what is being worked on is asked of the queue when
 * the page is. Queues of one name are one on the page, and add up. */
#ifndef PERILUNE_WORK_WORKMETER_H
#define PERILUNE_WORK_WORKMETER_H

#include <stddef.h>

#include "base/metric.h"

struct workmeter;

struct workmeter_state {
	size_t high, low;           /* keys that can be taken, by their priority */
	double unfinished, longest; /* seconds that the keys with workers have been there: their sum, and the most */
};
typedef void (*workmeter_fn)(void *data, struct workmeter_state *out);

/* The name is copied; ask is called for each page. The registry outlives it. */
struct workmeter *workmeter_new(struct metric_registry *registry, const char *name, workmeter_fn ask, void *data);
void workmeter_free(struct workmeter *meter);

void workmeter_added(struct workmeter *meter);                /* a key can be taken, or will when its worker is done */
void workmeter_delayed(struct workmeter *meter);              /* a key was added for later */
void workmeter_taken(struct workmeter *meter, double waited); /* seconds since it was added */
void workmeter_done(struct workmeter *meter, double worked_on); /* seconds since it was taken */

#endif
