#include "base/slab.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define POISON(at, size) ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define CHUNK ((size_t)SLAB_CHUNK)
#define CHUNKS 32                      /* of an arena; the first is its head */
#define ARENA ((size_t)CHUNKS * CHUNK) /* also its alignment, so that a piece's address tells its arena */
#define KEPT_CHUNKS 2                  /* empty ones that keep their pages for the next */

/* Pieces that were given back are linked through their first word. */
struct piece {
	struct piece *next;
};

struct chunk {
	struct list node;   /* of its class when it has room, of the empty ones when it is empty; else in none */
	struct piece *free; /* given back */
	uint32_t used;      /* pieces */
	uint32_t fresh;     /* offset of what was never taken, so that untouched pages stay so */
	uint32_t size;      /* of a piece; 0 while it is empty */
	bool has_pages;     /* behind fresh, too: it was used before, and they were not given back to the system */
};

struct arena {
	unsigned used; /* chunks that hold a piece */
	struct chunk chunks[CHUNKS];
};

static struct list warm = {&warm, &warm}, cold = {&cold, &cold}; /* empty chunks, with and without pages */
static size_t warm_count, held;
static struct arena *spare; /* one without a piece, kept for the next; others are unmapped */

/* Behind the fine ones, from SLAB_MOST bytes down: one for each number of pieces in a chunk. */
static unsigned class_of(size_t size)
{
	if (size <= SLAB_FINE)
		return (unsigned)(size + 7) / 8 - (size > 0);
	size = (size + 7) & ~(size_t)7;
	return (unsigned)(SLAB_FINE / 8 + CHUNK / size - CHUNK / SLAB_MOST);
}

static size_t size_of(unsigned class)
{
	if (class < SLAB_FINE / 8)
		return ((size_t) class + 1) * 8;
	return CHUNK / (class - SLAB_FINE / 8 + CHUNK / SLAB_MOST) & ~(size_t)7;
}

static struct arena *arena_of(const void *at)
{
	return (struct arena *)((uintptr_t)at & ~(ARENA - 1)); // NOLINT
}

static struct chunk *chunk_of(const void *at)
{
	return &arena_of(at)->chunks[((uintptr_t)at & (ARENA - 1)) / CHUNK];
}

static char *base_of(const struct chunk *chunk)
{
	struct arena *arena = arena_of(chunk);
	return (char *)arena + (size_t)(chunk - arena->chunks) * CHUNK;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		return memory;
	fprintf(stderr, "perilune: out of memory (%zu bytes)\n", size);
	abort();
}

/* More is mapped than needed, and what lies outside the alignment is given back. Huge pages would make a whole arena
 * resident for its first piece. */
static void map_arena(void)
{
	char *start = map(2 * ARENA), *at = start + (ARENA - ((uintptr_t)start & (ARENA - 1))) % ARENA;
	if (at > start)
		munmap(start, (size_t)(at - start));
	munmap(at + ARENA, (size_t)(start + ARENA - at));
	madvise(at, ARENA, MADV_NOHUGEPAGE);
	struct arena *arena = (void *)at;
	for (unsigned i = CHUNKS - 1; i >= 1; i--)
		list_add_tail(&cold, &arena->chunks[i].node);
}

static struct chunk *take_chunk(size_t size)
{
	if (list_is_empty(&warm) && list_is_empty(&cold))
		map_arena();
	bool is_warm = !list_is_empty(&warm);
	struct chunk *chunk = LIST_ENTRY(list_pop(is_warm ? &warm : &cold), struct chunk, node);
	warm_count -= is_warm;
	held += is_warm ? 0 : CHUNK;
	if (!arena_of(chunk)->used++)
		spare = NULL;
	*chunk = (struct chunk){.size = (uint32_t)size, .has_pages = is_warm};
	list_init(&chunk->node);
	POISON(base_of(chunk), CHUNK);
	return chunk;
}

static void unmap_arena(struct arena *arena)
{
	for (unsigned i = 1; i < CHUNKS; i++) {
		struct chunk *chunk = &arena->chunks[i];
		warm_count -= chunk->has_pages;
		held -= chunk->has_pages ? CHUNK : 0;
		list_remove(&chunk->node);
	}
	UNPOISON(arena, ARENA);
	munmap(arena, ARENA);
}

/* Those from that byte on. Whole ones only: the kernel rounds a length up, into what lies behind. */
static void give_pages(struct chunk *chunk, size_t from)
{
	static size_t page;
	if (!page)
		page = (size_t)sysconf(_SC_PAGESIZE);
	from = (from + page - 1) / page * page;
	if (from < CHUNK && CHUNK % page == 0)
		madvise(base_of(chunk) + from, CHUNK - from, MADV_DONTNEED);
}

static void give_chunk(struct chunk *chunk)
{
	struct arena *arena = arena_of(chunk);
	list_remove(&chunk->node);
	chunk->size = 0;
	chunk->has_pages = warm_count < KEPT_CHUNKS;
	if (chunk->has_pages) {
		warm_count++;
		list_add_tail(&warm, &chunk->node);
	} else {
		held -= CHUNK;
		give_pages(chunk, 0);
		list_add_tail(&cold, &chunk->node);
	}
	if (--arena->used)
		return;
	if (spare)
		unmap_arena(arena);
	else
		spare = arena;
}

static bool is_full(const struct chunk *chunk)
{
	return !chunk->free && chunk->fresh + chunk->size > CHUNK;
}

void slab_init(struct slab *slab)
{
	for (unsigned class = 0; class < SLAB_CLASSES; class ++)
		list_init(&slab->rooms[class]);
	slab->pieces = 0;
}

void *slab_take(struct slab *slab, size_t size)
{
	slab->pieces++;
	if (size > SLAB_MOST)
		return alloc_resize(NULL, size);
	unsigned class = class_of(size);
	struct list *room = &slab->rooms[class];
	if (list_is_empty(room))
		list_add_tail(room, &take_chunk(size_of(class))->node);
	struct chunk *chunk = LIST_ENTRY(room->next, struct chunk, node);
	struct piece *piece = chunk->free;
	if (piece) {
		UNPOISON(piece, chunk->size);
		chunk->free = piece->next;
	} else {
		piece = (void *)(base_of(chunk) + chunk->fresh);
		chunk->fresh += chunk->size;
		UNPOISON(piece, chunk->size);
	}
	chunk->used++;
	if (is_full(chunk))
		list_remove(&chunk->node);
	return piece;
}

void slab_give(struct slab *slab, void *memory, size_t size)
{
	slab->pieces--;
	if (size > SLAB_MOST) {
		alloc_free(memory);
		return;
	}
	struct chunk *chunk = chunk_of(memory);
	struct piece *piece = memory;
	assert(chunk->size == size_of(class_of(size)) && chunk->used);
	if (is_full(chunk))
		list_add_tail(&slab->rooms[class_of(size)], &chunk->node);
	piece->next = chunk->free;
	chunk->free = piece;
	POISON(piece, chunk->size);
	if (!--chunk->used)
		give_chunk(chunk);
}

static void trim_chunk(struct chunk *chunk)
{
	if (chunk->has_pages)
		give_pages(chunk, chunk->fresh);
	chunk->has_pages = false;
}

void slab_trim(struct slab *slab)
{
	for (unsigned class = 0; class < SLAB_CLASSES; class ++)
		LIST_EACH (&slab->rooms[class], node)
			trim_chunk(LIST_ENTRY(node, struct chunk, node));
}

size_t slab_held(void)
{
	return held;
}

void slab_check(const struct slab *slab)
{
#ifdef PERILUNE_DEBUG
	size_t counted = 0;
	for (unsigned class = 0; class < SLAB_CLASSES; class ++) {
		assert(class_of(size_of(class)) == class);
		LIST_EACH (&slab->rooms[class], node) {
			const struct chunk *chunk = LIST_ENTRY(node, struct chunk, node);
			assert(chunk->size == size_of(class) && chunk->used && !is_full(chunk));
			assert(chunk->used <= chunk->fresh / chunk->size && slab->pieces);
		}
	}
	LIST_EACH (&warm, node)
		counted += LIST_ENTRY(node, struct chunk, node)->has_pages;
	assert(counted == warm_count && warm_count <= KEPT_CHUNKS && held >= warm_count * CHUNK);
#else
	(void)slab;
#endif
}
