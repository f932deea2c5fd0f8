/* health: /healthz and /livez say whether the loop turns, /readyz whether the caches have filled. */
#ifndef PERILUNE_OPS_HEALTH_H
#define PERILUNE_OPS_HEALTH_H

#include "ops/pages.h"

/* Made on the server's own thread: 200 "ok", or 503 when the loop has been busy with one thing for longer than the
 * pages' patience; the script in which it is stuck is named. A loop that waits for events is idle, not stuck. */
void health_live(void *pages, pages_query query, void *request, struct server_answer *answer);

/* 200 "ok", or 503 with each informer and why it is late; ?verbose lists them in either case. */
void health_ready(void *pages, pages_query query, void *request, struct server_answer *answer);

#endif
