/* bell: rung on any thread, heard in the loop. */
#ifndef PERILUNE_NET_BELL_H
#define PERILUNE_NET_BELL_H

#include "net/loop.h"

struct bell;

/* job (borrowed) is posted after each ring; several may be folded into one. For the loop's thread. */
struct bell *bell_new(struct loop *loop, struct loop_job *job);
void bell_free(struct bell *bell); /* nobody may ring it any more; the job is not cancelled. NULL is harmless */

void bell_ring(struct bell *bell); /* any thread */

#endif
