/* mux_gate: lets transfers to one origin begin one after another, each when the one before has its connection.
 *
 * libcurl 7.88.1 puts no transfer on a connection that is still being made, once it knows that the origin speaks
 * HTTP/2: of 50 transfers that begin while the present connection is full, or goes away, each makes its own (measured).
 * Behind the gate they share one. A transfer that finds a connection with room has it in the next turn, so the gate
 * costs a turn for each; and it holds nobody for longer than a second. */
#ifndef PERILUNE_NET_MUX_GATE_H
#define PERILUNE_NET_MUX_GATE_H

#include "base/strmap.h"
#include "net/mux_transfer.h"

struct mux_gate {
	struct loop *loop;
	struct strmap origins;
	void (*admit)(struct mux_transfer *transfer);
};

void mux_gate_init(struct mux_gate *gate, struct loop *loop, void (*admit)(struct mux_transfer *transfer));
void mux_gate_fini(struct mux_gate *gate); /* all transfers have left */

void mux_gate_enter(struct mux_gate *gate, struct mux_transfer *transfer); /* admits it now or later */
void mux_gate_settled(struct mux_transfer *transfer);                      /* it has its connection */
void mux_gate_open(
    struct mux_transfer *transfer); /* the origin does not share connections: no one waits for it again */
void mux_gate_leave(struct mux_transfer *transfer);

#endif
