/* alloc: the process's memory, behind one replaceable door.
 *
 * Small allocations abort with a line on stderr when memory is out: no caller can do better. A size that a server
 * chose goes through alloc_try, after the caller has capped it. Types that are counted are declared with
 * ALLOC_TYPE; the live count of each is 0 when the program ends, and specs check that. */
#ifndef PERILUNE_BASE_ALLOC_H
#define PERILUNE_BASE_ALLOC_H

#include <stddef.h>
#include <stdio.h>

/* Returned memory is owned by the caller and goes back through alloc_free. Never NULL, except from alloc_try. */
void *alloc_zero(size_t size);                 /* zeroed */
void *alloc_try(size_t size);                  /* not zeroed; NULL when memory is out */
void *alloc_resize(void *memory, size_t size); /* as realloc; memory may be NULL */
void *alloc_copy(const void *bytes, size_t length);
char *alloc_string(const char *text);               /* a copy; NULL for NULL */
char *alloc_text(const char *bytes, size_t length); /* a copy with a NUL behind it */
char *alloc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void alloc_free(void *memory); /* NULL is harmless */
/* All threads take from one heap, as few do and a heap of its own would keep what one has freed. Where more than 4 MiB
 * are free at its end, they go back to the system; pieces of 1 MiB and more lie outside it. Before the first thread. */
void alloc_tune(void);
/* Pages of free memory go back to the system: after much was freed. Walks the heap, so one of more than 64 MiB is left
 * as it is: that would take tens of milliseconds. */
void alloc_trim(void);

/* One counted type. Define at file scope: ALLOC_TYPE(http_type, "http"). */
struct alloc_type {
	const char *name;
	long live;
	struct alloc_type *next;
};
#define ALLOC_TYPE(variable, name) static struct alloc_type variable = {name, 0, NULL}

/* For memory that comes from elsewhere: one more is live, or with -1 one less. */
void alloc_count(struct alloc_type *type, int change);
void *alloc_object(struct alloc_type *type, size_t size);      /* zeroed, counted */
void alloc_object_free(struct alloc_type *type, void *object); /* NULL is harmless */

/* Writes a line "type count" for each type with live objects to out (may be NULL); returns their sum.
 * Loop thread only. */
long alloc_live(FILE *out);

/* Replaces the allocator (realloc's contract: size 0 frees and returns NULL). NULL restores the C library's.
 * For specs. */
typedef void *(*alloc_fn)(void *data, void *memory, size_t size);
void alloc_replace(alloc_fn fn, void *data);

#endif
