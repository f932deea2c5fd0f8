/* press: packs raw objects on a thread of its own, a batch at a time. Raw objects of a line in; the same objects,
 * packed. The thread lives as long as the press; where the system gives none, the loop's does the work.
 *
 * The loop's thread chooses a batch and takes what came of it. Meanwhile the other reads JSON that nobody changes, and
 * writes where nobody reads. */
#ifndef PERILUNE_CACHE_PRESS_H
#define PERILUNE_CACHE_PRESS_H

#include "cache/object.h"
#include "net/bell.h"

struct press;

struct press *press_new(struct bell *bell); /* borrowed; rung when a batch is ready */
void press_free(
    struct press *press); /* waits for a batch that is under way, whose objects stay raw. NULL is harmless */

/* Takes the oldest of the line. Nothing may be under way, and something has to wait in the line. */
void press_begin(struct press *press, struct object_line *line, struct dictionary *dictionary);
bool press_is_busy(const struct press *press);  /* a batch is under way, or not yet taken */
bool press_is_ready(const struct press *press); /* and its thread is done */
/* Of a batch that is ready: its objects are packed, where that makes them smaller. Returns the bytes of their JSON. */
size_t press_end(struct press *press);

#endif
