/* filter: which objects of an informer one handler is told of. Notifications in; what they mean to that handler out.
 *
 * It remembers what the handler has been told of and not been told the end of. So entering is an add and leaving a
 * delete, with the last object that was told, also where the test would say something else today about yesterday's
 * object; and no handler gets a delete or an update of what it never heard of. */
#ifndef PERILUNE_CACHE_FILTER_H
#define PERILUNE_CACHE_FILTER_H

#include "cache/listener.h"

enum filter_verdict {
	FILTER_REFUSES,
	FILTER_PASSES,
	FILTER_FAILS /* no answer: what was in stays in, what was out stays out, and no delete is made up */
};

struct filter;
struct filter *filter_new(enum filter_verdict (*test)(void *data, const struct object *object), void *data);
void filter_free(struct filter *filter); /* NULL is harmless */

/* Turns a notification, popped in order, into what the handler is to be told. False: into nothing; it is still the
 * caller's. */
bool filter_admit(struct filter *filter, struct notification *notification);

#endif
