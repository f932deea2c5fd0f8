/* packer: packs the objects of one store when nobody is in a hurry. Raw objects in; the same objects, packed.
 *
 * Nothing is packed while an event is applied, and nearly nothing by the loop's thread. Once a second, what has come is
 * packed by another one, the oldest first; what is beyond a budget of bytes, at once. Only where that can't keep up,
 * the loop helps, in short turns. A little may stay raw, and so does a store that holds little: a dictionary and its
 * tables would cost more than they save.
 *
 * The first dictionary is learnt from the first objects, so that a cache never is raw as a whole, not even while it
 * fills. But lists are sorted, and so those are of the first namespaces. Once, when the store has been filled, another
 * is learnt from samples of all, a dense one where they are many; if it is worth it, everything is packed again with
 * that, by the loop, an object in each turn. */
#ifndef PERILUNE_CACHE_PACKER_H
#define PERILUNE_CACHE_PACKER_H

#include "cache/store.h"
#include "net/loop.h"

struct packer;

#define PACKER_BUDGET                                                                                                  \
	((size_t)3 * 512 * 1024) /* bytes of raw JSON; twice as much at most, but for what one turn brings */

/* Both are borrowed, and outlive it. */
struct packer *packer_new(struct loop *loop, const struct store *store);
void packer_free(struct packer *packer); /* objects stay as they are; NULL is harmless */

void packer_add(struct packer *packer, struct object *object); /* a new, raw one, whether stored or not; not counted */
void packer_fill(struct packer *packer);                       /* the store holds all that there is */

#endif
