/* keymap: items by key, open-addressed. Unlike strmap it copies no key: the bytes stay the item's own and are asked of
 * it.
 *
 * Costs 12 bytes a place, and no allocation for an item. The key of an item must not change while it is in the map. */
#ifndef PERILUNE_CACHE_KEYMAP_H
#define PERILUNE_CACHE_KEYMAP_H

#include <stddef.h>
#include <stdint.h>

typedef const char *(*keymap_key_fn)(const void *item, size_t *length);

struct keymap {
	void **items; /* NULL for an empty place */
	uint32_t *hashes;
	size_t count, capacity; /* capacity is 0 or a power of two; count is at most 3/4 of it */
	keymap_key_fn key;
};

void keymap_init(struct keymap *map, keymap_key_fn key);
void keymap_fini(struct keymap *map); /* items are not touched */

void *keymap_get(const struct keymap *map, const char *key, size_t length); /* NULL when absent */
void *keymap_put(struct keymap *map, void *item); /* returns the item of the same key that it replaces, or NULL */
void *keymap_remove(struct keymap *map, const char *key, size_t length); /* returns the item, or NULL */

#endif
