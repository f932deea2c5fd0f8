/* exchange: an HTTP server on the loop itself, for many answers that last long and grow, each under full control.
 *
 * libmicrohttpd is polled through libev. Its callbacks only record; on_request and on_gone are called from the loop's
 * drain. A request comes whole: method, path, query, headers and body up to a limit. Its answer is given whole, or is
 * opened and then pushed, in pieces, at any time. What a test wants of a bad server is here too: an answer that is cut,
 * a connection that is reset, one that goes silent, one that is slow. HTTP/1.1 and keep-alive; TLS where there is a
 * certificate.
 *
 * Invariant: on_gone is called exactly once for each request that on_request was called with, when its answer has been
 * sent to the end or can no longer be: the client closed (its half of) the connection, or the connection was ended from
 * this side. */
#ifndef PERILUNE_NET_EXCHANGE_H
#define PERILUNE_NET_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/loop.h"

struct exchange;

struct exchange_pair {
	char *name, *value;
};

struct exchange_pairs {
	struct exchange_pair *items;
	size_t count;
};

struct exchange_request {
	char *method, *path;           /* the path is decoded and has no query */
	struct exchange_pairs query;   /* decoded, in order; the value of a bare name is "" */
	struct exchange_pairs headers; /* names in lower case */
	struct buf body;               /* empty when it was too large */
	bool too_large;                /* the body passed the limit and was dropped */
	void *owner;                   /* the caller's own; not looked at */
};

struct exchange_options {
	const char *address;                                              /* as for listen_open */
	const char *cert, *key;                                           /* PEM texts; NULL: plain HTTP */
	size_t body_limit;                                                /* most bytes of a request's body */
	void (*on_request)(void *data, struct exchange_request *request); /* borrowed until on_gone */
	void (*on_gone)(void *data, struct exchange_request *request);    /* the request is dead after it */
	void *data;
};

/* NULL with err. */
struct exchange *exchange_new(struct loop *loop, const struct exchange_options *options, struct err *err);
/* Ends all connections; no event is called any more. Not from inside an event. */
void exchange_free(struct exchange *exchange);
int exchange_port(const struct exchange *exchange);

/* Nothing is under way: each request has an answer, and all that was pushed has left. Silent and slow ones count as
 * done: they wait for time, or for nothing. */
bool exchange_is_idle(const struct exchange *exchange);

/* For whoever sees the client's side too, and wants to know whether anything is still on its way between the two. The
 * count is of requests that have a head and are not gone; at_rest: the one from the client's port waits for its owner,
 * for time, or for nothing, as said above, and of its answer the head, and just so many bytes of the body, have left.
 */
size_t exchange_count(const struct exchange *exchange);
bool exchange_is_at_rest(const struct exchange *exchange, int client_port, bool headed, size_t sent);

/* A request is answered or opened once. headers: "Name: value", ended by NULL. All is copied. Harmless when the
 * client has gone. */
void exchange_answer(struct exchange_request *request, int status, const char *const *headers, const char *body,
		     size_t length);
void exchange_open(struct exchange_request *request, int status, const char *const *headers);
void exchange_push(struct exchange_request *request, const char *bytes, size_t length); /* between open and end */
void exchange_end(struct exchange_request *request);                                    /* in order, after all pushed */

/* Faults. They may be set before the answer is given. */
void exchange_cut(struct exchange_request *request, size_t after);     /* closed when so many bytes of body have gone */
void exchange_cut_here(struct exchange_request *request);              /* closed when what was pushed has gone */
void exchange_reset(struct exchange_request *request);                 /* at once, with RST */
void exchange_silence(struct exchange_request *request);               /* nothing goes out any more, nor an end */
void exchange_slow(struct exchange_request *request, double a_second); /* most bytes of body a second */

#endif
