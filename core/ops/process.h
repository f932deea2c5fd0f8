/* process: what the kernel knows of this process, under the names that Prometheus's own clients use. */
#ifndef PERILUNE_OPS_PROCESS_H
#define PERILUNE_OPS_PROCESS_H

#include "base/metric.h"

struct process;

/* Collects for the registry, which outlives it, until it is freed. What /proc does not tell is left out. */
struct process *process_new(struct metric_registry *registry);
void process_free(struct process *process);

#endif
