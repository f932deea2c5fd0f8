/* slab: many small pieces of memory that live long, without a header each, and whose pages go back to the system.
 *
 * A size is rounded up to a multiple of 8, above 512 bytes to the largest by which as many fit into a chunk; pieces of
 * one size and one slab share chunks. A chunk that holds no piece any more gives up its pages, whatever lies around it,
 * which a heap can't; unless the system's pages are larger than a chunk. So pieces that will go together belong into a
 * slab of their own. Loop thread only. */
#ifndef PERILUNE_BASE_SLAB_H
#define PERILUNE_BASE_SLAB_H

#include "base/list.h"

#define SLAB_CHUNK 32768 /* bytes */
#define SLAB_MOST 4096   /* bytes; larger pieces come from the heap */

#define SLAB_FINE 512 /* bytes up to which sizes are 8 apart */
#define SLAB_CLASSES (SLAB_FINE / 8 + SLAB_CHUNK / SLAB_FINE - SLAB_CHUNK / SLAB_MOST)

struct slab {
	struct list rooms[SLAB_CLASSES]; /* chunks with room for another piece, of each size */
	size_t pieces;
};
void slab_init(struct slab *slab);
void slab_check(
    const struct slab *slab); /* asserts the invariants, in debug builds. One without pieces holds nothing */

/* Not zeroed, aligned to 8, owned by the caller until slab_give with the same size. Never NULL: out of memory aborts,
 * as everywhere. */
void *slab_take(struct slab *slab, size_t size);
void slab_give(struct slab *slab, void *memory, size_t size);
/* Gives pages back that no piece was taken from yet. For when nothing will be taken for a while. */
void slab_trim(struct slab *slab);

size_t slab_held(void); /* bytes of all slabs' chunks, in use or kept for the next */

#endif
