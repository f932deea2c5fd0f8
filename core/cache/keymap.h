/* keymap: items by key, open-addressed. Unlike strmap it copies no key: the bytes stay the item's own and are asked of
 * it.
 *
 * An item is a pointer, or a number that its owner can make something of. Costs 12 bytes a place, 8 where items are
 * numbers, with at least half of the places in use once it has grown, and no allocation for an item. It grows in steps:
 * no put moves more than a few items, however many there are. The key of an item must not change while it is in the
 * map. */
#ifndef PERILUNE_CACHE_KEYMAP_H
#define PERILUNE_CACHE_KEYMAP_H

#include <stddef.h>
#include <stdint.h>

typedef const char *(*keymap_key_fn)(const void *item, size_t *length);
typedef const char *(*keymap_number_key_fn)(const void *data, uint32_t number, size_t *length);

/* At least a quarter of the places are empty: NULL or 0. */
struct keymap_table {
	void **items;      /* NULL where items are numbers */
	uint32_t *numbers; /* and this where they are pointers */
	uint32_t *hashes;
	size_t capacity;
};

struct keymap {
	struct keymap_table table; /* where items are put */
	struct keymap_table old;   /* what it grew out of, until all has moved; else of capacity 0 */
	size_t emptied;            /* places of old, from the first on, that are empty for good */
	size_t count;
	keymap_key_fn key; /* NULL where items are numbers */
	keymap_number_key_fn number_key;
	const void *data; /* of number_key */
};

void keymap_init(struct keymap *map, keymap_key_fn key);
void keymap_init_numbers(struct keymap *map, keymap_number_key_fn key,
			 const void *data); /* items are numbers, from 1 */
void keymap_fini(struct keymap *map);       /* items are not touched */

void *keymap_get(const struct keymap *map, const char *key, size_t length); /* NULL when absent */
void *keymap_put(struct keymap *map, void *item); /* returns the item of the same key that it replaces, or NULL */
void *keymap_remove(struct keymap *map, const char *key, size_t length); /* returns the item, or NULL */

/* Visits all items, in no order: start with *cursor = 0; NULL at the end. The map must not change meanwhile. */
void *keymap_next(const struct keymap *map, size_t *cursor);

/* The same for numbers, with 0 for NULL. */
uint32_t keymap_get_number(const struct keymap *map, const char *key, size_t length);
/* For one who needs the key's strmap_hash besides. */
uint32_t keymap_get_hashed_number(const struct keymap *map, const char *key, size_t length, uint64_t hash);
uint32_t keymap_put_number(struct keymap *map, uint32_t number);
uint32_t keymap_remove_number(struct keymap *map, const char *key, size_t length);
uint32_t keymap_next_number(const struct keymap *map, size_t *cursor);

void keymap_check(const struct keymap *map); /* asserts the invariants, in debug builds */

#endif
