/* discovery: apiVersion and kind (or plural) to a resource, asked of the server once a group version and remembered.
 *
 * A kind that is not there is asked for again at each look-up, so that a CRD that comes later is found; look-ups that
 * wait for the same answer share one request. */
#ifndef PERILUNE_KUBE_DISCOVERY_H
#define PERILUNE_KUBE_DISCOVERY_H

#include "kube/cluster.h"
#include "kube/resource.h"

struct discovery;
struct discovery *discovery_new(struct cluster *cluster);
void discovery_free(struct discovery *discovery);

struct discovery_lookup;
/* resource NULL with err: reason NoKind when the server answers and has no such kind (the message names near ones: "did
 * you mean"), else why it could not be asked. */
typedef void (*discovery_fn)(void *data, const struct resource *resource, const struct err *err);

/* kind or plural is NULL, not both. Calls on_found once, later, never before it returns, unless cancelled. */
struct discovery_lookup *discovery_find(struct discovery *discovery, const char *api_version, const char *kind,
					const char *plural, discovery_fn on_found, void *data);
void discovery_cancel(struct discovery_lookup *lookup);

/* What is already known, without a request; NULL when not. */
const struct resource *discovery_known(const struct discovery *discovery, const char *api_version, const char *kind,
				       const char *plural);
/* The next look-up asks again; known resources stay valid. */
void discovery_forget(struct discovery *discovery, const char *api_version);

#endif
