#include "base/strmap.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"

#define SMALLEST 8

static uint64_t seed[2];

/* Before main, so that threads need no lock around it. */
__attribute__((constructor)) static void seed_hash(void)
{
	if (getrandom(seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		return;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	seed[0] ^= (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15;
	seed[1] ^= (uint64_t)(uintptr_t)&now ^ (uint64_t)now.tv_sec << 32;
}

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_block(uint64_t v[4], uint64_t block)
{
	v[3] ^= block;
	sip_round(v);
	v[0] ^= block;
}

/* SipHash-1-3: a keyed hash, so that a peer that chooses keys can't choose collisions. */
uint64_t strmap_hash(const char *bytes, size_t length)
{
	uint64_t v[4] = {seed[0] ^ 0x736F6D6570736575, seed[1] ^ 0x646F72616E646F6D, seed[0] ^ 0x6C7967656E657261,
			 seed[1] ^ 0x7465646279746573};
	uint64_t block;
	size_t at = 0;
	for (; at + 8 <= length; at += 8) {
		memcpy(&block, bytes + at, 8);
		sip_block(v, block);
	}
	block = 0;
	if (at < length)
		memcpy(&block, bytes + at, length - at);
	sip_block(v, block | (uint64_t)length << 56);
	v[2] ^= 0xFF;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void strmap_init(struct strmap *map)
{
	*map = (struct strmap){0};
}

void strmap_clear(struct strmap *map)
{
	for (size_t i = 0; i < map->capacity; i++)
		alloc_free(map->entries[i].key);
	alloc_free(map->entries);
	strmap_init(map);
}

void strmap_fini(struct strmap *map)
{
	strmap_clear(map);
}

/* The key's entry, or the empty one where it would go. Needs at least one empty place. */
static struct strmap_entry *locate(const struct strmap *map, const char *key, size_t length, uint64_t hash)
{
	for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
		struct strmap_entry *entry = &map->entries[i];
		if (!entry->key)
			return entry;
		if (entry->hash == hash && entry->length == length && (!length || !memcmp(entry->key, key, length)))
			return entry;
	}
}

static void grow(struct strmap *map)
{
	struct strmap old = *map;
	map->capacity = old.capacity ? old.capacity * 2 : SMALLEST;
	map->entries = alloc_zero(map->capacity * sizeof(*map->entries));
	for (size_t i = 0; i < old.capacity; i++) {
		struct strmap_entry *entry = &old.entries[i];
		if (entry->key)
			*locate(map, entry->key, entry->length, entry->hash) = *entry;
	}
	alloc_free(old.entries);
}

void *strmap_get(const struct strmap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	return locate(map, key, length, strmap_hash(key, length))->value;
}

void *strmap_put(struct strmap *map, const char *key, size_t length, void *value)
{
	if (map->count + 1 > map->capacity / 4 * 3)
		grow(map);
	uint64_t hash = strmap_hash(key, length);
	struct strmap_entry *entry = locate(map, key, length, hash);
	void *before = entry->value;
	if (!entry->key) {
		*entry = (struct strmap_entry){alloc_text(key, length), length, hash, NULL};
		map->count++;
	}
	entry->value = value;
	return before;
}

/* Closes the gap at `gap`: entries behind it that could not sit at their own place move up, so that no marker stays. */
static void close_gap(struct strmap *map, size_t gap)
{
	size_t mask = map->capacity - 1;
	for (size_t i = (gap + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
		size_t home = map->entries[i].hash & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		map->entries[gap] = map->entries[i];
		gap = i;
	}
	map->entries[gap] = (struct strmap_entry){0};
}

void *strmap_remove(struct strmap *map, const char *key, size_t length)
{
	if (!map->count)
		return NULL;
	struct strmap_entry *entry = locate(map, key, length, strmap_hash(key, length));
	if (!entry->key)
		return NULL;
	void *value = entry->value;
	alloc_free(entry->key);
	close_gap(map, (size_t)(entry - map->entries));
	map->count--;
	return value;
}

bool strmap_next(const struct strmap *map, size_t *cursor, const char **key, size_t *length, void **value)
{
	while (*cursor < map->capacity) {
		const struct strmap_entry *entry = &map->entries[(*cursor)++];
		if (!entry->key)
			continue;
		if (key)
			*key = entry->key;
		if (length)
			*length = entry->length;
		if (value)
			*value = entry->value;
		return true;
	}
	return false;
}
