/* slab: many small pieces of memory that live long, without a header each, and whose pages go back to the system.
 *
 * A size is rounded up to a multiple of 8 (of 16 above 512 bytes); pieces of one size share chunks. A chunk that holds
 * no piece any more gives up its pages, whatever lies around it, which a heap can't. Loop thread only. */
#ifndef PERILUNE_BASE_SLAB_H
#define PERILUNE_BASE_SLAB_H

#include <stddef.h>

#define SLAB_MOST 2048 /* bytes; larger pieces come from the heap */

/* Not zeroed, aligned to 8, owned by the caller until slab_give with the same size. Never NULL: out of memory aborts,
 * as everywhere. */
void *slab_take(size_t size);
void slab_give(void *memory, size_t size);

size_t slab_held(void); /* bytes of pages that are in use or kept for the next */

void slab_check(void); /* asserts the invariants, in debug builds */

#endif
