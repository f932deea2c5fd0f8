/* leadership: a host's part in the election of a leader: what begins when it leads and ends when it has lost, the
 * metric, and what /status says of it. */
#ifndef PERILUNE_SCRIPT_LEADERSHIP_H
#define PERILUNE_SCRIPT_LEADERSHIP_H

#include "kube/elector.h"
#include "script/host.h"

struct leadership;
struct leadership *leadership_new(struct host *host, const struct elector_options *options);
void leadership_free(struct leadership *leadership); /* NULL is harmless; nothing is given back */

void leadership_start(struct leadership *leadership);
/* Takes part no more, and gives the lease back if it is held: then nothing of the leader's may run any more.
 * host_left_election is told later, once, or host_lost_leadership. */
void leadership_leave(struct leadership *leadership);
bool leadership_holds(const struct leadership *leadership); /* by a fresh reading of the clock */

void leadership_describe(const struct leadership *leadership, struct buf *out); /* appends a JSON object */

#endif
