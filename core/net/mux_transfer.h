/* mux_transfer: the side of mux that http works with. An easy handle that is ready to run goes in, its end comes out.
 *
 * on_end is called from a libev callback, so it only records and posts. Between mux_add and mux_remove the easy handle
 * belongs to the mux; mux_remove is for the drain, never for a callback of libcurl. */
#ifndef PERILUNE_NET_MUX_TRANSFER_H
#define PERILUNE_NET_MUX_TRANSFER_H

#include <curl/curl.h>

#include "net/mux.h"

struct mux_pool;

struct mux_transfer {
	struct list node;      /* in its pool's transfers */
	struct mux_pool *pool; /* NULL while it is in no mux */
	CURL *easy;
	void (*on_end)(struct mux_transfer *transfer, CURLcode code);
};

void mux_add(struct mux *mux, struct mux_transfer *transfer);
void mux_remove(struct mux_transfer *transfer); /* harmless when it is in no mux */

/* The transfers that share connections with this one, itself included: a list of mux_transfer.node. */
struct list *mux_siblings(const struct mux_transfer *transfer);

#endif
