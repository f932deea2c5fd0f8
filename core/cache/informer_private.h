/* The informer's inside, shared by informer.c, feed.c and informer_report.c. */
#ifndef PERILUNE_CACHE_INFORMER_PRIVATE_H
#define PERILUNE_CACHE_INFORMER_PRIVATE_H

#include "cache/feed.h"
#include "cache/informer.h"

struct informer {
	struct list node; /* in its feed's informers, until it is stopped */
	unsigned count;
	struct feed *feed; /* a reference */
	struct spec spec;
	bool started, stopped;
	size_t needed; /* by so many */
	struct list listeners;
	struct list observers;
	struct loop_job change_job;
};

/* For feed.c. */
void informer_changed(struct informer *informer); /* its observers hear of it, later */
void informer_notify(struct informer *informer, const struct notification *notification);
/* The feed (counted by this) takes the place of its own, which is given up; its open listeners get what is stored. */
void informer_join(struct informer *informer, struct feed *feed);
struct informer *informer_of_node(struct list *node);

#endif
