/* ask: one request to a server of net/local.h, and its answer. Waits in place, without a loop. */
#ifndef PERILUNE_NET_ASK_H
#define PERILUNE_NET_ASK_H

#include "base/buf.h"
#include "base/err.h"

#define ASK_PATIENCE 2.0

/* seconds: for the whole of it; 0: for as long as the server takes. The answer is appended to out, up to its limit. 0,
 * or -1 with err: what the server refused with, or with the reason "Connection" where no process listens, and
 * "Timeout". on_slow, unless NULL, is called once when the answer has taken ASK_PATIENCE seconds. */
int ask_local(const char *path, const char *request, double seconds, void (*on_slow)(void), struct buf *out,
	      struct err *err);

#endif
