/* progress: while caches fill, one line for each informer on a terminal, redrawn in place. */
#ifndef PERILUNE_CLI_PROGRESS_H
#define PERILUNE_CLI_PROGRESS_H

#include "base/log.h"
#include "script/host.h"

struct progress;

/* NULL, and nothing is drawn, when stderr is no terminal that people read. Ends by itself when the host is ready. */
struct progress *progress_new(struct loop *loop, struct host *host, enum log_format format);
void progress_free(struct progress *progress); /* NULL is harmless */

#endif
