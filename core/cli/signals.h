/* signals: SIGTERM and SIGINT end the host, the second one the process; SIGHUP is to reload.
 *
 * Signals that come before the loop runs are kept for it. */
#ifndef PERILUNE_CLI_SIGNALS_H
#define PERILUNE_CLI_SIGNALS_H

#include "script/host.h"

void signals_end(struct loop *loop, struct host *host);    /* SIGTERM, SIGINT; until loop_free */
void signals_reload(struct loop *loop, struct host *host); /* SIGHUP; the same */

#endif
