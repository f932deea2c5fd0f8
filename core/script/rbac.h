/* rbac: what rights the scripts of a host need, by what they registered, name and declare; whether a cluster has their
 * kinds and gives them those rights; and the roles that would.
 *
 * Which rights those are is lua/perilune/rbac.lua's word. The scripts have been loaded, and host_start has not been
 * called. */
#ifndef PERILUNE_SCRIPT_RBAC_H
#define PERILUNE_SCRIPT_RBAC_H

#include "script/audit.h"
#include "script/host.h"

/* Of leader election. */
struct rbac_lease {
	const char *namespace, *name;
	bool wanted; /* also where no script has something that is the leader's alone */
};

struct rbac;
/* Of the scripts as they are now; all is borrowed, the lease for the call. */
struct rbac *rbac_new(struct host *host, struct audit *audit, const struct rbac_lease *lease);
void rbac_free(struct rbac *rbac); /* NULL is harmless */

/* Each is done when on_done is called, later, from the loop, unless the rbac is freed before. */
typedef void (*rbac_fn)(void *data);
/* Asks the host's cluster for the scripts' kinds. */
void rbac_look_up(struct rbac *rbac, rbac_fn on_done, void *data);
/* Asks it for each right, but those on optional kinds. -1 with err when nothing could be asked: no on_done follows. */
int rbac_review(struct rbac *rbac, rbac_fn on_done, void *data, struct err *err);

/* Whether it has been looked up of each kind whether it is there. */
bool rbac_is_answered(const struct rbac *rbac);

/* What came of that, a line for each fault; whether there is one. */
bool rbac_tell_kinds(const struct rbac *rbac, struct buf *out);
int rbac_tell_missing(const struct rbac *rbac, struct buf *out, struct err *err); /* -1 with err: could not be asked */

/* Appends the roles, for this service account. Kinds that were not looked up go by the built-in ones, or by guess. */
int rbac_yaml(const struct rbac *rbac, const char *namespace, const char *account, struct buf *out, struct err *err);

#endif
