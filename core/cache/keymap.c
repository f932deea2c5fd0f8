#include "cache/keymap.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"

#define SMALLEST 8

/* A table of C places is outgrown by one of 3/2 C after 3/8 C more puts. Until then C places have to be emptied of 3/4
 * C items, which takes five steps a put. */
#define STEPS 6

void keymap_init(struct keymap *map, keymap_key_fn key)
{
	*map = (struct keymap){.key = key};
}

void keymap_fini(struct keymap *map)
{
	alloc_free(map->table.items);
	alloc_free(map->old.items);
	keymap_init(map, map->key);
}

static uint32_t hash_of(const char *key, size_t length)
{
	return (uint32_t)strmap_hash(key, length);
}

static size_t home_of(const struct keymap_table *table, uint32_t hash)
{
	return (size_t)((uint64_t)hash * table->capacity >> 32);
}

static size_t after(const struct keymap_table *table, size_t i)
{
	return i + 1 < table->capacity ? i + 1 : 0;
}

static size_t distance(const struct keymap_table *table, size_t from, size_t to)
{
	return to >= from ? to - from : to + table->capacity - from;
}

/* The place of the key, or the empty one where it would go. Needs at least one empty place. */
static size_t locate(const struct keymap_table *table, keymap_key_fn key_of, const char *key, size_t length,
		     uint32_t hash)
{
	for (size_t i = home_of(table, hash);; i = after(table, i)) {
		size_t other;
		if (!table->items[i])
			return i;
		if (table->hashes[i] != hash)
			continue;
		const char *text = key_of(table->items[i], &other);
		if (other == length && !memcmp(text, key, length))
			return i;
	}
}

/* Both arrays lie in one piece of memory: the pointers first, for their alignment. */
static struct keymap_table make_table(size_t capacity)
{
	void **items = alloc_zero(capacity * (sizeof(void *) + sizeof(uint32_t)));
	return (struct keymap_table){items, (uint32_t *)(void *)(items + capacity), capacity};
}

/* Moves back what was displaced by the item that left, so that no marks of the dead are needed. */
static void close_gap(struct keymap_table *table, size_t gap)
{
	for (size_t i = after(table, gap); table->items[i]; i = after(table, i)) {
		size_t home = home_of(table, table->hashes[i]);
		if (distance(table, home, i) < distance(table, gap, i))
			continue;
		table->items[gap] = table->items[i];
		table->hashes[gap] = table->hashes[i];
		gap = i;
	}
	table->items[gap] = NULL;
}

static void insert(struct keymap_table *table, void *item, uint32_t hash)
{
	size_t at = home_of(table, hash);
	while (table->items[at])
		at = after(table, at);
	table->items[at] = item;
	table->hashes[at] = hash;
}

static void move_item(struct keymap *map)
{
	void *item = map->old.items[map->emptied];
	uint32_t hash = map->old.hashes[map->emptied];
	close_gap(&map->old, map->emptied);
	insert(&map->table, item, hash);
}

/* Closing a gap may bring an item into the place that is being emptied, but into none before: once the first place is
 * empty, none is displaced over the end. */
static void step(struct keymap *map)
{
	if (map->old.items[map->emptied]) {
		move_item(map);
	} else if (++map->emptied == map->old.capacity) {
		alloc_free(map->old.items);
		map->old = (struct keymap_table){0};
	}
}

static void make_room(struct keymap *map)
{
	for (int i = 0; i < STEPS && map->old.capacity; i++)
		step(map);
	if (map->count + 1 <= map->table.capacity / 4 * 3)
		return;
	while (map->old.capacity) /* only a very small one */
		step(map);
	map->old = map->table;
	map->emptied = 0;
	map->table = make_table(map->old.capacity ? map->old.capacity / 2 * 3 : SMALLEST);
}

static void *get_from(const struct keymap *map, const struct keymap_table *table, const char *key, size_t length,
		      uint32_t hash)
{
	return table->capacity ? table->items[locate(table, map->key, key, length, hash)] : NULL;
}

void *keymap_get(const struct keymap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	uint32_t hash = hash_of(key, length);
	void *item = get_from(map, &map->table, key, length, hash);
	return item ? item : get_from(map, &map->old, key, length, hash);
}

/* Puts the item in the place of the one with its key, if there is one in the table. Returns that. */
static void *replace(const struct keymap *map, struct keymap_table *table, void *item, uint32_t hash)
{
	size_t length;
	if (!table->capacity)
		return NULL;
	const char *key = map->key(item, &length);
	size_t at = locate(table, map->key, key, length, hash);
	void *before = table->items[at];
	if (before)
		table->items[at] = item;
	return before;
}

void *keymap_put(struct keymap *map, void *item)
{
	size_t length;
	const char *key = map->key(item, &length);
	uint32_t hash = hash_of(key, length);
	void *before = replace(map, &map->table, item, hash);
	if (!before)
		before = replace(map, &map->old, item, hash);
	if (before)
		return before;
	make_room(map);
	insert(&map->table, item, hash);
	map->count++;
	return NULL;
}

static void *remove_from(const struct keymap *map, struct keymap_table *table, const char *key, size_t length,
			 uint32_t hash)
{
	if (!table->capacity)
		return NULL;
	size_t at = locate(table, map->key, key, length, hash);
	void *item = table->items[at];
	if (item)
		close_gap(table, at);
	return item;
}

void *keymap_remove(struct keymap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	uint32_t hash = hash_of(key, length);
	void *item = remove_from(map, &map->table, key, length, hash);
	if (!item)
		item = remove_from(map, &map->old, key, length, hash);
	map->count -= item != NULL;
	/* What was large, as with all objects of a cache in it at once, is not kept for nothing. */
	if (!map->count && map->table.capacity > 32 * SMALLEST)
		keymap_fini(map);
	return item;
}

void *keymap_next(const struct keymap *map, size_t *cursor)
{
	while (*cursor < map->table.capacity + map->old.capacity) {
		size_t i = (*cursor)++;
		void *item = i < map->table.capacity ? map->table.items[i] : map->old.items[i - map->table.capacity];
		if (item)
			return item;
	}
	return NULL;
}

#ifdef PERILUNE_DEBUG
static size_t check_table(const struct keymap *map, const struct keymap_table *table)
{
	size_t count = 0;
	for (size_t i = 0; i < table->capacity; i++) {
		size_t length;
		if (!table->items[i])
			continue;
		const char *key = map->key(table->items[i], &length);
		assert(table->hashes[i] == hash_of(key, length));
		assert(locate(table, map->key, key, length, table->hashes[i]) == i);
		count++;
	}
	assert(count <= table->capacity / 4 * 3);
	return count;
}
#endif

void keymap_check(const struct keymap *map)
{
#ifdef PERILUNE_DEBUG
	assert(check_table(map, &map->table) + check_table(map, &map->old) == map->count);
	for (size_t i = 0; map->old.capacity && i < map->emptied; i++)
		assert(!map->old.items[i]);
#else
	(void)map;
#endif
}
