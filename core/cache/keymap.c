#include "cache/keymap.h"

#include <assert.h>
#include <stdbool.h>
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

void keymap_init_numbers(struct keymap *map, keymap_number_key_fn key, const void *data)
{
	*map = (struct keymap){.number_key = key, .data = data};
}

/* The pieces of memory that make_table made. */
static void free_table(struct keymap_table *table)
{
	alloc_free(table->items);
	alloc_free(table->numbers);
	*table = (struct keymap_table){0};
}

void keymap_fini(struct keymap *map)
{
	free_table(&map->table);
	free_table(&map->old);
	map->count = map->emptied = 0;
}

/* Both arrays lie in one piece of memory: the pointers first, for their alignment. */
static struct keymap_table make_table(const struct keymap *map, size_t capacity)
{
	struct keymap_table table = {.capacity = capacity};
	if (map->key) {
		table.items = alloc_zero(capacity * (sizeof(void *) + sizeof(uint32_t)));
		table.hashes = (uint32_t *)(void *)(table.items + capacity);
	} else {
		table.numbers = alloc_zero(capacity * 2 * sizeof(uint32_t));
		table.hashes = table.numbers + capacity;
	}
	return table;
}

/* Inside, numbers pass for pointers. */
static void *item_of_number(uint32_t number)
{
	return (void *)(uintptr_t)number;
}

static uint32_t number_of_item(const void *item)
{
	return (uint32_t)(uintptr_t)item;
}

static void *item_at(const struct keymap_table *table, size_t i)
{
	return table->items ? table->items[i] : item_of_number(table->numbers[i]);
}

static void set_item(struct keymap_table *table, size_t i, void *item)
{
	if (table->items)
		table->items[i] = item;
	else
		table->numbers[i] = number_of_item(item);
}

static const char *key_of(const struct keymap *map, const void *item, size_t *length)
{
	return map->key ? map->key(item, length) : map->number_key(map->data, number_of_item(item), length);
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
static size_t locate(const struct keymap *map, const struct keymap_table *table, const char *key, size_t length,
		     uint32_t hash)
{
	for (size_t i = home_of(table, hash);; i = after(table, i)) {
		size_t other;
		const void *item = item_at(table, i);
		if (!item)
			return i;
		if (table->hashes[i] != hash)
			continue;
		const char *text = key_of(map, item, &other);
		if (other == length && !memcmp(text, key, length))
			return i;
	}
}

/* Moves back what was displaced by the item that left, so that no marks of the dead are needed. */
static void close_gap(struct keymap_table *table, size_t gap)
{
	for (size_t i = after(table, gap); item_at(table, i); i = after(table, i)) {
		size_t home = home_of(table, table->hashes[i]);
		if (distance(table, home, i) < distance(table, gap, i))
			continue;
		set_item(table, gap, item_at(table, i));
		table->hashes[gap] = table->hashes[i];
		gap = i;
	}
	set_item(table, gap, NULL);
}

static void insert(struct keymap_table *table, void *item, uint32_t hash)
{
	size_t at = home_of(table, hash);
	while (item_at(table, at))
		at = after(table, at);
	set_item(table, at, item);
	table->hashes[at] = hash;
}

static void move_item(struct keymap *map, void *item)
{
	uint32_t hash = map->old.hashes[map->emptied];
	close_gap(&map->old, map->emptied);
	insert(&map->table, item, hash);
}

/* Closing a gap may bring an item into the place that is being emptied, but into none before: once the first place is
 * empty, none is displaced over the end. */
static void step(struct keymap *map)
{
	void *item = item_at(&map->old, map->emptied);
	if (item)
		move_item(map, item);
	else if (++map->emptied == map->old.capacity)
		free_table(&map->old);
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
	map->table = make_table(map, map->old.capacity ? map->old.capacity / 2 * 3 : SMALLEST);
}

static void *get_from(const struct keymap *map, const struct keymap_table *table, const char *key, size_t length,
		      uint32_t hash)
{
	return table->capacity ? item_at(table, locate(map, table, key, length, hash)) : NULL;
}

static void *get(const struct keymap *map, const char *key, size_t length, uint32_t hash)
{
	void *item = get_from(map, &map->table, key, length, hash);
	return item ? item : get_from(map, &map->old, key, length, hash);
}

void *keymap_get(const struct keymap *map, const char *key, size_t length)
{
	return map->count ? get(map, key, length, hash_of(key, length)) : NULL;
}

/* Puts the item in the place of the one with its key, if there is one in the table. Returns that. */
static void *replace(const struct keymap *map, struct keymap_table *table, void *item, uint32_t hash)
{
	size_t length;
	if (!table->capacity)
		return NULL;
	const char *key = key_of(map, item, &length);
	size_t at = locate(map, table, key, length, hash);
	void *before = item_at(table, at);
	if (before)
		set_item(table, at, item);
	return before;
}

void *keymap_put(struct keymap *map, void *item)
{
	size_t length;
	const char *key = key_of(map, item, &length);
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
	size_t at = locate(map, table, key, length, hash);
	void *item = item_at(table, at);
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
		bool first = i < map->table.capacity;
		void *item = first ? item_at(&map->table, i) : item_at(&map->old, i - map->table.capacity);
		if (item)
			return item;
	}
	return NULL;
}

uint32_t keymap_get_number(const struct keymap *map, const char *key, size_t length)
{
	return number_of_item(keymap_get(map, key, length));
}

uint32_t keymap_get_hashed_number(const struct keymap *map, const char *key, size_t length, uint64_t hash)
{
	return map->count ? number_of_item(get(map, key, length, (uint32_t)hash)) : 0;
}

uint32_t keymap_put_number(struct keymap *map, uint32_t number)
{
	return number_of_item(keymap_put(map, item_of_number(number)));
}

uint32_t keymap_remove_number(struct keymap *map, const char *key, size_t length)
{
	return number_of_item(keymap_remove(map, key, length));
}

uint32_t keymap_next_number(const struct keymap *map, size_t *cursor)
{
	return number_of_item(keymap_next(map, cursor));
}

#ifdef PERILUNE_DEBUG
static size_t check_table(const struct keymap *map, const struct keymap_table *table)
{
	size_t count = 0;
	for (size_t i = 0; i < table->capacity; i++) {
		size_t length;
		if (!item_at(table, i))
			continue;
		const char *key = key_of(map, item_at(table, i), &length);
		assert(table->hashes[i] == hash_of(key, length));
		assert(locate(map, table, key, length, table->hashes[i]) == i);
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
		assert(!item_at(&map->old, i));
#else
	(void)map;
#endif
}
