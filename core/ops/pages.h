/* pages: the HTTP pages of --listen. Each page is a file and a row of the table in pages.c. */
#ifndef PERILUNE_OPS_PAGES_H
#define PERILUNE_OPS_PAGES_H

#include "net/server.h"
#include "script/host.h"

struct pages { /* what a page sees */
	struct loop *loop;
	struct host *host;
	double patience; /* seconds that the loop may be busy with one thing before the program counts as stuck */
	struct process *process; /* its metrics */
	struct server *server;
};

/* address as for server_new. time_limit: what a script may take between yields (0: no limit), which is no stall. NULL
 * with err. */
struct pages *pages_new(struct loop *loop, struct host *host, const char *address, double time_limit, struct err *err);
void pages_free(struct pages *pages); /* NULL is harmless */

/* How a page is made; see server.h. */
typedef const char *(*pages_query)(void *request, const char *name);

#endif
