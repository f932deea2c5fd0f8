/* control: what the programs of a host's user ask of it over a unix socket: the other end of `perilune status`
 * and `perilune reload`.
 *
 * A request is a row of the table in control.c: one word. */
#ifndef PERILUNE_OPS_CONTROL_H
#define PERILUNE_OPS_CONTROL_H

#include "script/host.h"

struct control;

/* path: the socket; NULL: the place of this process (ops/place.h). NULL with err. Freed before the host, when the
 * loop has stopped. */
struct control *control_new(struct loop *loop, struct host *host, const char *path, struct err *err);
void control_free(struct control *control); /* NULL is harmless */

#endif
