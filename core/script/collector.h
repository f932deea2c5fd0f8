/* collector: collects the garbage of one state while the loop has nothing else to do, in small steps, so that calls of
 * the script seldom wait for it. Where the loop never rests, Lua's own collector works within the calls, as ever. */
#ifndef PERILUNE_SCRIPT_COLLECTOR_H
#define PERILUNE_SCRIPT_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

struct state;

struct collector {
	struct loop *loop; /* borrowed; NULL: it does nothing */
	struct loop_job job;
	size_t from; /* bytes of the state's memory that begin a cycle */
	bool again;  /* the cycle under way is the second in a row */
};

/* Embedded in the state, which outlives it. */
void collector_init(struct collector *collector, struct state *state, struct loop *loop);
void collector_fini(struct collector *collector);

void collector_look(struct collector *collector, size_t memory); /* after an entry into the state, which has so much */

#endif
