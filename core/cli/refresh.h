/* refresh: reloads a host's scripts when their files change. */
#ifndef PERILUNE_CLI_REFRESH_H
#define PERILUNE_CLI_REFRESH_H

#include "cli/options.h"
#include "script/host.h"

struct refresh;

/* Of options->operands those that --watch says; unless it says so, those that a ConfigMap is mounted to. Made before
 * they are loaded, so that no change is missed. *refresh is NULL where nothing is to be watched. 0, or -1 with err,
 * when --watch was given and files can't be watched. */
int refresh_new(struct loop *loop, struct host *host, const struct options *options, struct refresh **refresh,
		struct err *err);
void refresh_free(struct refresh *refresh); /* when the loop has stopped, before the host; NULL is harmless */

#endif
