/* server: the HTTP pages of --listen, on libmicrohttpd's own threads, so that a stalled loop can still be told from
 * outside.
 *
 * GET and HEAD only. A page marked `threaded` is made on a thread of the server's, several at a time, and must only
 * read atomics; any other page is made on the loop and answered with 503 when the loop does not get to it within 1 s.
 */
#ifndef PERILUNE_NET_SERVER_H
#define PERILUNE_NET_SERVER_H

#include "base/buf.h"
#include "net/loop.h"

struct server_answer {
	int status;               /* 200 at the call */
	const char *content_type; /* text/plain; charset=utf-8 at the call; a static string */
	struct buf body;
};

struct server_page {
	const char *path; /* "/readyz"; NULL ends a table */
	bool threaded;
	/* query: the value after the name, "" for a bare name as in "?verbose", NULL when absent */
	void (*make)(void *data, const char *(*query)(void *request, const char *name), void *request,
		     struct server_answer *answer);
};

struct server;

/* address: "127.0.0.1:8080", ":8080" (all addresses), "[::1]:0" (any free port). pages and data stay valid until
 * server_free. NULL with err. */
struct server *server_new(struct loop *loop, const char *address, const struct server_page *pages, void *data,
			  struct err *err);
void server_free(struct server *server); /* waits for running answers; call from the loop's thread */
int server_port(const struct server *server);

#endif
