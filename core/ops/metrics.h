/* metrics: /metrics, the host's registry in Prometheus's text format. */
#ifndef PERILUNE_OPS_METRICS_H
#define PERILUNE_OPS_METRICS_H

#include "ops/pages.h"

void metrics_page(void *pages, pages_query query, void *request, struct server_answer *answer);

#endif
