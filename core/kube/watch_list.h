/* watch_list: which resources this server does not stream from their initial state on.
 *
 * A resource that refused is listed from then on, until the server's version has changed (it may have learnt to). That
 * is looked at when a remembered resource is asked about, once a minute at most. */
#ifndef PERILUNE_KUBE_WATCH_LIST_H
#define PERILUNE_KUBE_WATCH_LIST_H

#include "kube/cluster.h"
#include "kube/resource.h"

struct watch_list;
struct watch_list *watch_list_new(struct cluster *cluster);
void watch_list_free(struct watch_list *watch_list);

bool watch_list_works(struct watch_list *watch_list, const struct resource *resource);
void watch_list_refused(struct watch_list *watch_list, const struct resource *resource);

#endif
