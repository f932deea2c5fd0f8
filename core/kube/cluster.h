/* cluster: one API server as the program knows it: configuration, credentials, two pools of connections (watches;
 * everything else) and discovery. */
#ifndef PERILUNE_KUBE_CLUSTER_H
#define PERILUNE_KUBE_CLUSTER_H

#include "base/strmap.h"
#include "kube/auth.h"
#include "kube/config.h"
#include "kube/meter.h"
#include "net/mux.h"

struct cluster {
	struct loop *loop;
	struct config *config; /* owned */
	struct auth *auth;     /* owned */
	struct mux *calls, *watches;
	struct discovery *discovery;
	struct watch_list *watch_list;
	struct list waiting;           /* requests beyond the cap of CLUSTER_CALLS at once, in order; request.c's */
	unsigned running;              /* calls under way (watches are not counted); request.c's */
	struct strmap warnings;        /* the texts of Warning headers that were logged; warning.c's */
	struct list leaders;           /* requests that only the leader may send, while they live; request.c's */
	const struct elector *elector; /* who says whether it is the leader; NULL: it always is. elector.c's */
	struct meter *meter;           /* owned; set by whoever wants requests to be counted, else NULL */
	bool dry_run;                  /* every write goes out with dryRun=All */
};

#define CLUSTER_CALLS 100

/* config is taken, also on failure. NULL with err. Connects to nothing. */
struct cluster *cluster_new(struct loop *loop, struct config *config, struct err *err);
void cluster_free(struct cluster *cluster); /* no request may be left */

#endif
