/* status: /status, the host's informers, barrier and scripts as JSON. */
#ifndef PERILUNE_OPS_STATUS_H
#define PERILUNE_OPS_STATUS_H

#include "ops/pages.h"

void status_page(void *pages, pages_query query, void *request, struct server_answer *answer);

#endif
