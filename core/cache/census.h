/* census: the metrics of a pool's informers, worked out when the page is asked for. */
#ifndef PERILUNE_CACHE_CENSUS_H
#define PERILUNE_CACHE_CENSUS_H

#include "base/metric.h"
#include "cache/factory.h"

struct census;

/* Collects for the registry until it is freed. Both outlive it. */
struct census *census_new(struct metric_registry *registry, struct pool *pool);
void census_free(struct census *census);

#endif
