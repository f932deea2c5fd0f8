/* mux: libcurl's multi interface on the loop; one mux is one pool of connections.
 *
 * The only file that knows both libev and libcurl. Takes prepared easy handles from http.c and says when each is done;
 * sockets and the time-out are watched through libev, whose callbacks call curl_multi_socket_action and nothing else.
 */
#ifndef PERILUNE_NET_MUX_H
#define PERILUNE_NET_MUX_H

#include "net/loop.h"

struct mux;

struct mux_options {
	int max_streams;     /* HTTP/2 streams on one connection; API servers allow 100 (the default of
				--http2-max-streams-per-connection is 100 there) */
	int max_connections; /* in all; 0 is no limit */
};

struct mux *mux_new(struct loop *loop, const struct mux_options *options);
void mux_free(struct mux *mux); /* no transfer may be left */
struct loop *mux_loop(struct mux *mux);
/* Connections are not reused for what starts after this call; running transfers go on. For changed certificates and
 * after a silent connection. */
void mux_retire(struct mux *mux);
/* Nothing that libcurl still holds for a connection is written any more, not even what is half written: what is under
 * way on it breaks off. For the wake of the loop too. */
void mux_cut(struct mux *mux);
unsigned mux_running(const struct mux *mux);

#endif
