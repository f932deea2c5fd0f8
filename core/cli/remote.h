/* remote: the running host that a command line speaks to: that of --socket, or the user's only one. */
#ifndef PERILUNE_CLI_REMOTE_H
#define PERILUNE_CLI_REMOTE_H

#include "base/buf.h"
#include "cli/options.h"

/* seconds: how long the host may take; 0: for ever. on_slow: as ask_local. The answer, valid JSON, is appended to out,
 * the path of the host's socket to where, unless that is NULL. 0, or an exit code after the reason was told on stderr:
 * EXIT_USAGE where several hosts run and none was named. */
int remote_ask(const struct options *options, const char *request, double seconds, void (*on_slow)(void),
	       struct buf *where, struct buf *out);

#endif
