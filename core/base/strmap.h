/* strmap: byte strings to pointers, open-addressed. The hash is seeded at random, since servers choose the keys. */
#ifndef PERILUNE_BASE_STRMAP_H
#define PERILUNE_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strmap_entry {
	char *key; /* owned; NULL for an empty place */
	size_t length;
	uint64_t hash;
	void *value; /* borrowed */
};

struct strmap {
	struct strmap_entry *entries;
	size_t count, capacity; /* capacity is 0 or a power of two; count is at most 3/4 of it */
};

void strmap_init(struct strmap *map);
void strmap_fini(struct strmap *map); /* frees keys, not values */

/* The value, or NULL when absent. */
void *strmap_get(const struct strmap *map, const char *key, size_t length);
/* Copies the key; returns the value before, or NULL. */
void *strmap_put(struct strmap *map, const char *key, size_t length, void *value);
/* Returns the value, or NULL. */
void *strmap_remove(struct strmap *map, const char *key, size_t length);
void strmap_clear(struct strmap *map);

/* Visits all entries: start with *cursor = 0; false at the end. The map must not change meanwhile. */
bool strmap_next(const struct strmap *map, size_t *cursor, const char **key, size_t *length, void **value);

uint64_t strmap_hash(const char *bytes, size_t length); /* seeded at random once a process */

#endif
