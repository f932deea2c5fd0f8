/* resource: one resource type of a cluster, and the paths of its objects. */
#ifndef PERILUNE_KUBE_RESOURCE_H
#define PERILUNE_KUBE_RESOURCE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Immutable, owned by discovery, valid until the cluster is freed. */
struct resource {
	char *group;       /* "" for the core group */
	char *version;     /* "v1" */
	char *api_version; /* "v1", "apps/v1" */
	char *kind;
	char *plural; /* "pods" */
	bool namespaced;
	bool watchable;
};

/* "apps/v1" to its parts; group "" for "v1". -1 with err when it is no apiVersion (empty, two slashes, characters that
 * can't stand in a path). */
int resource_split(const char *api_version, char group[254], char version[64], struct err *err);

/* Appends "/api/v1/namespaces/shop/pods/web-1/status": namespace NULL for all or cluster-scoped, name NULL for the
 * collection, subresource NULL for none. Each part is percent-encoded. */
void resource_path(const struct resource *resource, const char *namespace, const char *name, const char *subresource,
		   struct buf *out);

/* Appends "pods", "deployments.apps": the way kubectl and RBAC messages write it. */
void resource_name(const struct resource *resource, struct buf *out);

#endif
