/* loop_ev: the libev loop inside a loop. For the files of core/net that watch descriptors. */
#ifndef PERILUNE_NET_LOOP_EV_H
#define PERILUNE_NET_LOOP_EV_H

struct ev_loop;
struct loop;

struct ev_loop *loop_ev(struct loop *loop);

#endif
