#include "cache/labels.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/slab.h"
#include "base/strmap.h"
#include "cache/keymap.h"

ALLOC_TYPE(set_type, "label set");

#define FIRST 2 /* of the numbers that are sets */

/* Places at first, 128 bytes: a process with a handful of sets pays little. More than FIRST. */
#define SMALLEST 16

struct set {
	uint32_t count; /* objects that have it, each of its versions for itself */
	uint32_t only;  /* hash of the key of the one object that it was seen at; 0 once there were two */
	uint16_t length;
	char bytes[];
};

/* For a set in places and in numbers, both with 8 bytes a place: the one is five sixths full on average, the other five
 * eighths. That makes 22.4, rounded up to eights. */
#define FINDING_BYTES 24

union place {
	struct set *set;
	uint32_t next; /* of the free ones; 0 for the last */
};

static union place *places; /* by number; the first FIRST are not used */
static uint32_t end, capacity;
static uint32_t first_free; /* 0: none below end */
static uint32_t set_count;
static struct keymap numbers; /* by bytes */
static struct slab slab;

static size_t held, alone; /* bytes of all sets, and of those that were seen at one object only */

/* Sets that were not held, the last of each place, and at which object. Where two hashes meet by chance, a set of one
 * object is held, no more. */
struct sighting {
	uint32_t labels, key; /* hashes */
};
/* 32 KB. Objects of one set come near each other, when they are made and in a list by name: it is enough that fewer
 * sets than this come between two of them. */
#define SIGHTINGS 4096
static struct sighting sightings[SIGHTINGS];

static size_t set_size(const struct set *set)
{
	return offsetof(struct set, bytes) + set->length;
}

static size_t cost_of(size_t length)
{
	return offsetof(struct set, bytes) + length + FINDING_BYTES;
}

static const char *bytes_of(const void *data, uint32_t number, size_t *length)
{
	(void)data;
	const struct set *set = places[number].set;
	*length = set->length;
	return set->bytes;
}

static void begin(void)
{
	keymap_init_numbers(&numbers, bytes_of, NULL);
	slab_init(&slab);
	end = FIRST;
}

static void finish(void)
{
	keymap_fini(&numbers);
	alloc_free(places);
	places = NULL;
	end = capacity = first_free = 0;
}

static uint32_t take_number(void)
{
	uint32_t number = first_free;
	if (number) {
		first_free = places[number].next;
		return number;
	}
	/* An object would hold the number of another set. No memory has room for that many. */
	assert(end < (uint32_t)1 << LABELS_BITS);
	if (end >= capacity) {
		capacity = capacity ? capacity / 2 * 3 : SMALLEST;
		places = alloc_resize(places, capacity * sizeof(*places));
	}
	return end++;
}

static void give_number(uint32_t number)
{
	places[number].next = first_free;
	first_free = number;
}

/* Not 0, which means that there were two. */
static uint32_t hash_key(struct json_slice key)
{
	return (uint32_t)strmap_hash(key.data, key.length) | 1;
}

/* Notes at which object a set was seen that is not held. Whether it was another the last time. hash: of the set; key:
 * by hash_key. */
static bool note_sighting(uint64_t hash, uint32_t key)
{
	struct sighting now = {(uint32_t)(hash >> 32), key}, *last = &sightings[hash % SIGHTINGS];
	bool seen = last->labels == now.labels && last->key && last->key != now.key;
	*last = now;
	return seen;
}

/* only: as in the set. */
static uint32_t add(struct json_slice labels, uint32_t only)
{
	if (!set_count)
		begin();
	uint32_t number = take_number();
	struct set *set = slab_take(&slab, offsetof(struct set, bytes) + labels.length);
	set->count = 1;
	set->only = only;
	set->length = (uint16_t)labels.length;
	memcpy(set->bytes, labels.data, labels.length);
	places[number].set = set;
	keymap_put_number(&numbers, number);
	alloc_count(&set_type, 1);
	set_count++;
	held += cost_of(set->length);
	alone += only ? cost_of(set->length) : 0;
	return number;
}

static void take_again(struct set *set, struct json_slice key)
{
	set->count++;
	if (!set->only || set->only == hash_key(key))
		return;
	set->only = 0;
	alone -= cost_of(set->length);
}

static uint32_t take_new(struct json_slice labels, uint64_t hash, struct json_slice key)
{
	uint32_t only = hash_key(key);
	if (alone + cost_of(labels.length) <= LABELS_ALONE)
		return add(labels, only);
	return note_sighting(hash, only) ? add(labels, 0) : LABELS_UNKNOWN;
}

uint32_t labels_take(struct json_slice labels, struct json_slice key)
{
	if (!labels.data)
		return LABELS_NONE;
	if (labels.length > LABELS_LONGEST)
		return LABELS_UNKNOWN;
	uint64_t hash = strmap_hash(labels.data, labels.length);
	uint32_t number = keymap_get_hashed_number(&numbers, labels.data, labels.length, hash);
	if (!number)
		return take_new(labels, hash, key);
	take_again(places[number].set, key);
	return number;
}

static void drop(uint32_t number)
{
	struct set *set = places[number].set;
	keymap_remove_number(&numbers, set->bytes, set->length);
	held -= cost_of(set->length);
	alone -= set->only ? cost_of(set->length) : 0;
	slab_give(&slab, set, set_size(set));
	give_number(number);
	alloc_count(&set_type, -1);
	if (!--set_count)
		finish();
}

void labels_give(uint32_t number)
{
	if (number < FIRST)
		return;
	if (!--places[number].set->count)
		drop(number);
}

struct json_slice labels_bytes(uint32_t number)
{
	assert(number != LABELS_UNKNOWN);
	if (number == LABELS_NONE)
		return (struct json_slice){NULL, 0};
	const struct set *set = places[number].set;
	return (struct json_slice){set->bytes, set->length};
}

uint32_t labels_end(void)
{
	return end > FIRST ? end : FIRST;
}

size_t labels_held(void)
{
	return held;
}

void labels_check(void)
{
#ifdef PERILUNE_DEBUG
	uint32_t free = 0;
	size_t all = 0, of_one = 0, cursor = 0;
	for (uint32_t number = first_free; number; number = places[number].next)
		free++;
	if (!set_count) {
		assert(!places && !free && !held && !alone);
		return;
	}
	assert(set_count + free + FIRST == end && end <= capacity && numbers.count == set_count);
	for (uint32_t number; (number = keymap_next_number(&numbers, &cursor));) {
		const struct set *set = places[number].set;
		assert(set->count);
		all += cost_of(set->length);
		of_one += set->only ? cost_of(set->length) : 0;
	}
	assert(all == held && of_one == alone && alone <= LABELS_ALONE);
	keymap_check(&numbers);
	slab_check(&slab);
#endif
}
