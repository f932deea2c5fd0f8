/* elector: takes part in the election of one leader among processes, by a Lease of coordination.k8s.io/v1 as
 * client-go's leader election keeps it.
 *
 * Nobody's clock is compared with another's. Somebody else's lease is over when this process has seen no change of its
 * record for as long as that record says. The own one is over renew_deadline after the last write that renewed it was
 * begun, which is before anyone else may take it; time that this process or machine was stopped counts. From that
 * moment on elector_is_leading is false, and what was under way with request_options.leader is cut off before another
 * byte of it is written. Each write holds the resourceVersion of what was read, and what others keep in the Lease
 * stays. */
#ifndef PERILUNE_KUBE_ELECTOR_H
#define PERILUNE_KUBE_ELECTOR_H

#include "kube/cluster.h"

/* Seconds; lease_duration > renew_deadline > 1.2 * retry_period > 0, and the first is a whole number. */
struct elector_options {
	const char *namespace, *name; /* of the Lease; borrowed for the call of elector_new */
	double lease_duration, renew_deadline, retry_period;
};

/* Called from the loop, each once at most. */
struct elector_events {
	void (*on_leading)(void *data);
	/* After on_leading. Why: one line, borrowed. Nothing of the leader's is under way, and the elector has ended.
	 */
	void (*on_lost)(void *data, const char *why);
	void (*on_stopped)(void *data); /* what elector_stop asked for */
};

struct elector;

/* One a cluster, which asks it about its requests until it is freed. */
struct elector *elector_new(struct cluster *cluster, const struct elector_options *options,
			    const struct elector_events *events, void *data);
void elector_free(struct elector *elector); /* NULL is harmless */
void elector_start(struct elector *elector);
/* Takes part no more, and gives the lease back if it is held, in half of renew_deadline at most. on_stopped is told
 * later, also when it was never started, but not when it has lost. */
void elector_stop(struct elector *elector);

bool elector_is_leading(const struct elector *elector); /* by a fresh reading of the clock */

const char *elector_lease(const struct elector *elector);    /* "namespace/name" */
const char *elector_identity(const struct elector *elector); /* of this process: "host_uuid" */
const char *elector_holder(const struct elector *elector);   /* who leads, as seen last; "" for nobody, or not known */

#endif
