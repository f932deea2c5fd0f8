#include "cache/keymap.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"

#define SMALLEST 8

void keymap_init(struct keymap *map, keymap_key_fn key)
{
	*map = (struct keymap){.key = key};
}

void keymap_fini(struct keymap *map)
{
	alloc_free(map->items);
	keymap_init(map, map->key);
}

static uint32_t hash_of(const char *key, size_t length)
{
	return (uint32_t)strmap_hash(key, length);
}

/* The place of the key, or the empty one where it would go. Needs at least one empty place. */
static size_t locate(const struct keymap *map, const char *key, size_t length, uint32_t hash)
{
	for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
		if (!map->items[i])
			return i;
		size_t other;
		if (map->hashes[i] != hash)
			continue;
		const char *text = map->key(map->items[i], &other);
		if (other == length && !memcmp(text, key, length))
			return i;
	}
}

static size_t first_empty(const struct keymap *map, uint32_t hash)
{
	size_t i = hash & (map->capacity - 1);
	while (map->items[i])
		i = (i + 1) & (map->capacity - 1);
	return i;
}

/* Both arrays lie in one piece of memory: the pointers first, for their alignment. */
static void resize(struct keymap *map, size_t capacity)
{
	struct keymap old = *map;
	map->capacity = capacity;
	map->items = alloc_zero(capacity * (sizeof(void *) + sizeof(uint32_t)));
	map->hashes = (uint32_t *)(void *)(map->items + capacity);
	for (size_t i = 0; i < old.capacity; i++) {
		if (!old.items[i])
			continue;
		size_t to = first_empty(map, old.hashes[i]);
		map->items[to] = old.items[i];
		map->hashes[to] = old.hashes[i];
	}
	alloc_free(old.items);
}

void *keymap_get(const struct keymap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	return map->items[locate(map, key, length, hash_of(key, length))];
}

void *keymap_put(struct keymap *map, void *item)
{
	if (map->count + 1 > map->capacity / 4 * 3)
		resize(map, map->capacity ? map->capacity * 2 : SMALLEST);
	size_t length;
	const char *key = map->key(item, &length);
	uint32_t hash = hash_of(key, length);
	size_t at = locate(map, key, length, hash);
	void *before = map->items[at];
	map->items[at] = item;
	map->hashes[at] = hash;
	map->count += !before;
	return before;
}

/* Moves back what was displaced by the item that left, so that no marks of the dead are needed. */
static void close_gap(struct keymap *map, size_t gap)
{
	size_t mask = map->capacity - 1;
	for (size_t i = (gap + 1) & mask; map->items[i]; i = (i + 1) & mask) {
		size_t home = map->hashes[i] & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		map->items[gap] = map->items[i];
		map->hashes[gap] = map->hashes[i];
		gap = i;
	}
	map->items[gap] = NULL;
}

void *keymap_remove(struct keymap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	size_t at = locate(map, key, length, hash_of(key, length));
	void *item = map->items[at];
	if (!item)
		return NULL;
	close_gap(map, at);
	map->count--;
	return item;
}
