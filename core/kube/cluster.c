#include "kube/cluster.h"

#include "base/alloc.h"
#include "kube/discovery.h"
#include "kube/watch_list.h"

ALLOC_TYPE(cluster_type, "cluster");

/* What API servers allow on one connection unless told otherwise. */
#define STREAMS 100

struct cluster *cluster_new(struct loop *loop, struct config *config, struct err *err)
{
	struct auth *auth = auth_new(loop, config, err);
	if (!auth) {
		config_free(config);
		return NULL;
	}
	struct cluster *cluster = alloc_object(&cluster_type, sizeof(*cluster));
	const struct mux_options options = {.max_streams = STREAMS};
	cluster->loop = loop;
	cluster->config = config;
	cluster->auth = auth;
	cluster->calls = mux_new(loop, &options);
	cluster->watches = mux_new(loop, &options);
	list_init(&cluster->waiting);
	list_init(&cluster->leaders);
	strmap_init(&cluster->warnings);
	cluster->discovery = discovery_new(cluster);
	cluster->watch_list = watch_list_new(cluster);
	return cluster;
}

void cluster_free(struct cluster *cluster)
{
	if (!cluster)
		return;
	watch_list_free(cluster->watch_list);
	discovery_free(cluster->discovery);
	meter_free(cluster->meter);
	strmap_fini(&cluster->warnings);
	mux_free(cluster->calls);
	mux_free(cluster->watches);
	auth_free(cluster->auth);
	config_free(cluster->config);
	alloc_object_free(&cluster_type, cluster);
}
