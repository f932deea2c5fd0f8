/* place: where the control sockets of a user's hosts stand, so that they are found without being named.
 *
 * PID.sock in $XDG_RUNTIME_DIR/perilune, or, where that can't be had, in perilune-UID under $TMPDIR or /tmp. A folder
 * counts only when nobody else can write to it, nor put another one in its place. */
#ifndef PERILUNE_OPS_PLACE_H
#define PERILUNE_OPS_PLACE_H

#include "base/buf.h"
#include "base/err.h"

/* The path for this process appended to out, in a folder that is made when it is not there. The sockets that dead
 * processes left in it are taken away. 0, or -1 with err. */
int place_make(struct buf *out, struct err *err);

/* Each socket on which a process listens, in the order of their paths; path is borrowed for the call. */
void place_each(void (*fn)(void *data, const char *path), void *data);
void place_describe(struct buf *out); /* appends the folders that place_each looks into: "A and B" */

#endif
