/* dryrun: what a cluster's dry_run changes in a request. */
#ifndef PERILUNE_KUBE_DRYRUN_H
#define PERILUNE_KUBE_DRYRUN_H

#include "kube/request.h"

/* Whether a write to that path has to say dryRun=All. */
bool dryrun_holds(const struct cluster *cluster, const char *path);
bool dryrun_is_in(const char *query); /* query may be NULL */

/* The body to send instead, owned by the caller; NULL where the one that was given can stay. */
char *dryrun_body(const struct request_options *options);

#endif
