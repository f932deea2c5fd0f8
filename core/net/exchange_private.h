/* exchange_private: one request of an exchange, shared by exchange.c (the server) and exchange_request.c (its
 * requests).
 *
 * A request sleeps (is suspended) whenever libmicrohttpd would have nothing to do for it; what changes that wakes it.
 */
#ifndef PERILUNE_NET_EXCHANGE_PRIVATE_H
#define PERILUNE_NET_EXCHANGE_PRIVATE_H

#include <ev.h>
#include <microhttpd.h>

#include "net/exchange.h"

enum step { RECEIVING, WAITING, ANSWERED };

struct request {
	struct exchange_request public; /* first: what the owner holds is this */
	struct exchange *exchange;
	struct list node;  /* in exchange->requests */
	struct list ready; /* in exchange->incoming or exchange->gone */
	struct MHD_Connection *connection;
	int fd;
	int client_port;
	enum step step;
	bool told;      /* on_request has been called */
	bool completed; /* libmicrohttpd has let go of it: connection and fd mean nothing any more */
	bool asleep;    /* suspended: libmicrohttpd does not look at it until it is woken */
	bool doomed;    /* to be closed without more */
	ev_io closing;  /* while asleep, libmicrohttpd does not notice that the client closes */
	struct loop_timer look_again;

	struct MHD_Response *response; /* until it is queued */
	int status;
	struct buf out;
	size_t taken; /* of out */
	size_t sent;  /* of the body, in all */
	bool ended;   /* nothing more is pushed */

	size_t cut_after;
	bool silent;
	double a_second; /* 0: not slowed */
	double slow_since, slow_sent;
	struct loop_timer slow;
};

struct exchange {
	struct loop *loop;
	struct exchange_options options;
	struct MHD_Daemon *daemon;
	int port;
	ev_io ready;
	struct loop_timer timeout;
	struct loop_job job;
	struct loop_job resume;
	struct list requests, incoming, gone;
	bool closing;
};

struct request *exchange_request_new(struct exchange *exchange, struct MHD_Connection *connection, const char *method,
				     const char *path);
void exchange_request_free(struct request *request);
void exchange_request_sleep(struct request *request);
void exchange_request_doom(struct request *request); /* to be closed without more */
void exchange_request_stop(struct request *request); /* its timers and its watcher */

#endif
