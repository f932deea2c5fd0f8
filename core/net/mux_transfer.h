/* mux_transfer: the side of mux that http works with. An easy handle that is ready to run goes in, its end comes out.
 *
 * on_end is called from a libev callback, so it only records and posts. Between mux_add and mux_remove the easy handle
 * belongs to the mux; mux_remove is for the drain, never for a callback of libcurl. */
#ifndef PERILUNE_NET_MUX_TRANSFER_H
#define PERILUNE_NET_MUX_TRANSFER_H

#include <curl/curl.h>

#include "net/mux.h"

struct mux_pool;
struct mux_origin;

struct mux_transfer {
	struct list node;      /* in its pool's transfers */
	struct mux_pool *pool; /* NULL while it is in no mux */
	CURL *easy;
	bool endless;      /* its answer may go on for ever, so the server must learn at once that it is given up; its
			      owner's */
	bool connected;    /* it has its connection */
	bool whole;        /* it has ended well */
	bool holds;        /* mux_hold */
	char *origin_name; /* equal for transfers that could share a connection, NULL for one that never does; its
			      owner's */
	struct mux_origin *origin;
	struct list gate_node; /* in its origin's waiting */
	void (*on_end)(struct mux_transfer *transfer, CURLcode code);
};

void mux_add(struct mux *mux, struct mux_transfer *transfer);
void mux_remove(struct mux_transfer *transfer);    /* harmless when it is in no mux */
void mux_connected(struct mux_transfer *transfer); /* it has its connection; callable in a callback of libcurl */
void mux_unshared(struct mux_transfer *transfer);  /* its origin speaks no HTTP/2; callable there too */

/* Nothing is read from the sockets that the transfer may be on until mux_release, or until it is removed: what has come
 * is dealt with first. Both are harmless when repeated. */
void mux_hold(struct mux_transfer *transfer);
void mux_release(struct mux_transfer *transfer);

void mux_each(const struct mux *mux, void (*fn)(void *data, struct mux_transfer *transfer), void *data);
/* The connections that this transfer may be on are not used for what starts after this call. */
void mux_retire_for(const struct mux_transfer *transfer);

/* The transfers that share connections with this one, itself included: a list of mux_transfer.node. */
struct list *mux_siblings(const struct mux_transfer *transfer);

#endif
