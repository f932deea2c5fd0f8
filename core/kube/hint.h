/* hint: near names for a kind that the server does not have. Asks the server for all of its kinds, when first needed
 * and again after some minutes. */
#ifndef PERILUNE_KUBE_HINT_H
#define PERILUNE_KUBE_HINT_H

#include "kube/cluster.h"

struct hint;

/* on_ready is called from the loop, once after each hint_ask, or once after several. */
struct hint *hint_new(struct cluster *cluster, loop_fn on_ready, void *data);
void hint_free(struct hint *hint);
void hint_ask(struct hint *hint);

/* Appends "kind Deployment in apps/v1 or …"; nothing when no name is near, or when the server would not say. kind or
 * plural is NULL. */
void hint_near(const struct hint *hint, const char *api_version, const char *kind, const char *plural, struct buf *out);

#endif
