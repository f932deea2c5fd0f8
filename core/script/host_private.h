/* host_private: what scripts and bindings ask of their host, beyond what the command line sees. */
#ifndef PERILUNE_SCRIPT_HOST_PRIVATE_H
#define PERILUNE_SCRIPT_HOST_PRIVATE_H

#include "base/list.h"
#include "script/host.h"

const struct host_options *host_get_options(const struct host *host);
struct loop *host_loop(const struct host *host);
struct cluster *host_cluster(const struct host *host); /* NULL without one: host_get_options()->no_config says why */
struct mux *host_outside(const struct host *host);     /* for servers that are no part of the cluster */
struct applied *host_applied(const struct host *host); /* by its scripts, in all their loads */
struct tally *host_tally(const struct host *host);
struct list *host_scripts(struct host *host);
/* Whether what only the leader does may begin now, by a fresh reading of the clock; always without leader election. */
bool host_is_leader(const struct host *host);
/* A controller of this name in a script that has lost its place and still ends, or is about to; NULL for none. */
struct reconciler *host_find_leaving(const struct host *host, const char *name);
struct reconciler *host_find_coming(const struct host *host, const char *name); /* in one that waits for its place */
void host_describe_leadership(const struct host *host, struct buf *out);        /* leadership_describe's, or null */
/* The election has ended, as leadership.h says. */
void host_lost_leadership(struct host *host);
void host_left_election(struct host *host);
void host_specs_ended(struct host *host, const struct err *err); /* the spec runner's main has returned */
void host_set_exit_code(struct host *host, int code);
void host_settled(struct host *host); /* a call has ended: a shutdown that waits for calls looks again */

#endif
