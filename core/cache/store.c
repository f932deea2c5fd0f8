#include "cache/store.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "cache/index.h"

ALLOC_TYPE(store_type, "store");

/* A list of entries by their numbers: first and last of the whole, next and previous of one. 0 is none, which is the
 * head. */
struct link {
	uint32_t next, prev;
};

/* Each entry stands in two. */
enum list_kind { IN_ORDER, IN_SPACE, LIST_KINDS };

/* A namespace's objects, in the store's order. None is empty. */
struct space {
	struct link entries;
	size_t count;
	size_t length;
	char name[];
};

/* One key. 24 bytes; what few stores or few calls need stands in its chunk. */
struct entry {
	struct object *object; /* NULL for a free one */
	struct link links[LIST_KINDS];
};

#define CHUNK_ENTRIES 64
struct chunk {
	struct entry entries[CHUNK_ENTRIES];
	struct posting **postings; /* one for each entry; NULL as long as no index has come by */
	uint64_t touched;          /* those that belong to the round, a bit each */
	uint64_t unfiled;          /* those that indexes have under what their object was before, if at all */
};

struct store {
	struct keymap entries; /* their numbers, by the object's key */
	struct link order;
	struct keymap spaces;
	struct list indexes;
	struct chunk **chunks; /* of the numbers from 1 on; chunks don't move */
	size_t chunk_count;
	uint32_t used; /* the highest number given out */
	uint32_t free; /* the first of those given back, which are joined by links[IN_ORDER].next; 0 for none */
	size_t bytes;
	size_t unfiled; /* entries */
	bool filing;    /* an index function is being called, which may ask an index */
};

static struct chunk *chunk_of(const struct store *store, uint32_t number)
{
	return store->chunks[(number - 1) / CHUNK_ENTRIES];
}

static struct entry *entry_of(const struct store *store, uint32_t number)
{
	return &chunk_of(store, number)->entries[(number - 1) % CHUNK_ENTRIES];
}

static const char *entry_key(const void *data, uint32_t number, size_t *length)
{
	return object_key(entry_of(data, number)->object, length);
}

static const char *space_key(const void *item, size_t *length)
{
	const struct space *space = item;
	*length = space->length;
	return space->name;
}

static struct link *link_of(const struct store *store, enum list_kind kind, struct link *head, uint32_t number)
{
	return number ? &entry_of(store, number)->links[kind] : head;
}

static void append(struct store *store, enum list_kind kind, struct link *head, uint32_t number)
{
	*link_of(store, kind, head, number) = (struct link){.next = 0, .prev = head->prev};
	link_of(store, kind, head, head->prev)->next = number;
	head->prev = number;
}

static void take_out(struct store *store, enum list_kind kind, struct link *head, uint32_t number)
{
	const struct link *link = link_of(store, kind, head, number);
	link_of(store, kind, head, link->prev)->next = link->next;
	link_of(store, kind, head, link->next)->prev = link->prev;
}

struct store *store_new(void)
{
	struct store *store = alloc_object(&store_type, sizeof(*store));
	keymap_init_numbers(&store->entries, entry_key, store);
	keymap_init(&store->spaces, space_key);
	list_init(&store->indexes);
	return store;
}

static void add_chunk(struct store *store)
{
	size_t count = store->chunk_count;
	if (!(count & (count - 1)))
		store->chunks = alloc_resize(store->chunks, (count ? 2 * count : 1) * sizeof(*store->chunks));
	store->chunks[store->chunk_count++] = alloc_zero(sizeof(struct chunk));
}

static uint32_t take_number(struct store *store)
{
	uint32_t number = store->free;
	if (number) {
		store->free = entry_of(store, number)->links[IN_ORDER].next;
		return number;
	}
	if (store->used == store->chunk_count * CHUNK_ENTRIES)
		add_chunk(store);
	return ++store->used;
}

static void give_back(struct store *store, uint32_t number)
{
	struct entry *entry = entry_of(store, number);
	entry->object = NULL;
	entry->links[IN_ORDER].next = store->free;
	store->free = number;
}

static struct space *find_space(const struct store *store, const struct object *object)
{
	size_t length;
	const char *name = object_namespace(object, &length);
	return keymap_get(&store->spaces, name, length);
}

static struct space *space_of(struct store *store, const struct object *object)
{
	size_t length;
	const char *name = object_namespace(object, &length);
	struct space *space = find_space(store, object);
	if (space)
		return space;
	space = alloc_zero(sizeof(*space) + length + 1);
	space->length = length;
	memcpy(space->name, name, length);
	keymap_put(&store->spaces, space);
	return space;
}

static void leave_space(struct store *store, uint32_t number)
{
	struct space *space = find_space(store, entry_of(store, number)->object);
	take_out(store, IN_SPACE, &space->entries, number);
	if (--space->count)
		return;
	keymap_remove(&store->spaces, space->name, space->length);
	alloc_free(space);
}

static uint64_t bit_of(uint32_t number)
{
	return (uint64_t)1 << (number - 1) % CHUNK_ENTRIES;
}

static void touch(struct store *store, uint32_t number)
{
	chunk_of(store, number)->touched |= bit_of(number);
}

static struct posting **postings_of(const struct store *store, uint32_t number)
{
	struct chunk *chunk = chunk_of(store, number);
	if (!chunk->postings)
		chunk->postings = alloc_zero(CHUNK_ENTRIES * sizeof(*chunk->postings));
	return &chunk->postings[(number - 1) % CHUNK_ENTRIES];
}

static void file(const struct store *store, struct index *index, uint32_t number)
{
	struct entry *entry = entry_of(store, number);
	index_update(index, entry, entry->object, postings_of(store, number));
}

static void note_filed(struct store *store, uint32_t number)
{
	struct chunk *chunk = chunk_of(store, number);
	store->unfiled -= chunk->unfiled & bit_of(number) ? 1 : 0;
	chunk->unfiled &= ~bit_of(number);
}

static void update_indexes(struct store *store, uint32_t number)
{
	bool outer = store->filing;
	note_filed(store, number);
	store->filing = true;
	LIST_EACH (&store->indexes, node)
		file(store, LIST_ENTRY(node, struct index, node), number);
	store->filing = outer;
}

static void note_unfiled(struct store *store, uint32_t number)
{
	struct chunk *chunk = chunk_of(store, number);
	if (list_is_empty(&store->indexes))
		return;
	store->unfiled += chunk->unfiled & bit_of(number) ? 0 : 1;
	chunk->unfiled |= bit_of(number);
}

static bool file_chunk(struct store *store, size_t i, double until)
{
	struct chunk *chunk = store->chunks[i];
	while (chunk->unfiled) {
		update_indexes(store, (uint32_t)(i * CHUNK_ENTRIES + (size_t)__builtin_ctzll(chunk->unfiled) + 1));
		if (clock_now() >= until)
			return false;
	}
	return true;
}

bool store_file(struct store *store, double until)
{
	for (size_t i = 0; store->unfiled && !store->filing && i < store->chunk_count; i++)
		if (!file_chunk(store, i, until))
			break;
	return !store->unfiled || store->filing;
}

static void leave_indexes(const struct store *store, uint32_t number)
{
	if (chunk_of(store, number)->postings)
		index_clear(NULL, postings_of(store, number));
}

static uint32_t insert(struct store *store, struct object *object)
{
	uint32_t number = take_number(store);
	struct space *space = space_of(store, object);
	entry_of(store, number)->object = object_ref(object);
	touch(store, number);
	space->count++;
	append(store, IN_SPACE, &space->entries, number);
	append(store, IN_ORDER, &store->order, number);
	keymap_put_number(&store->entries, number);
	store->bytes += object_length(object);
	return number;
}

static uint32_t find(const struct store *store, const char *key, size_t length)
{
	return keymap_get_number(&store->entries, key, length);
}

/* Returns the entry's number. */
static uint32_t put(struct store *store, struct object *object, struct object **before)
{
	size_t length;
	const char *key = object_key(object, &length);
	uint32_t number = find(store, key, length);
	*before = NULL;
	if (!number)
		return insert(store, object);
	struct entry *entry = entry_of(store, number);
	*before = entry->object;
	entry->object = object_ref(object);
	touch(store, number);
	store->bytes += object_length(object) - object_length(*before);
	return number;
}

struct object *store_put(struct store *store, struct object *object)
{
	struct object *before;
	update_indexes(store, put(store, object, &before));
	return before;
}

struct object *store_put_unfiled(struct store *store, struct object *object)
{
	struct object *before;
	note_unfiled(store, put(store, object, &before));
	return before;
}

/* An index that was to file it next goes on behind it. */
static void pass_over(struct store *store, uint32_t number)
{
	LIST_EACH (&store->indexes, node) {
		struct index *index = LIST_ENTRY(node, struct index, node);
		if (index->unfiled == number)
			index->unfiled = entry_of(store, number)->links[IN_ORDER].next;
	}
}

struct object *store_remove(struct store *store, const char *key, size_t length)
{
	uint32_t number = keymap_remove_number(&store->entries, key, length);
	if (!number)
		return NULL;
	struct object *object = entry_of(store, number)->object;
	pass_over(store, number);
	note_filed(store, number);
	leave_indexes(store, number);
	leave_space(store, number);
	take_out(store, IN_ORDER, &store->order, number);
	give_back(store, number);
	store->bytes -= object_length(object);
	return object;
}

static void free_last_chunk(struct store *store)
{
	struct chunk *chunk = store->chunks[--store->chunk_count];
	for (size_t i = 0; i < CHUNK_ENTRIES; i++) {
		if (chunk->postings)
			index_clear(NULL, &chunk->postings[i]);
		object_unref(chunk->entries[i].object);
	}
	alloc_free(chunk->postings);
	alloc_free(chunk);
}

bool store_free_some(struct store *store, double until)
{
	while (store->chunk_count) {
		free_last_chunk(store);
		if (clock_now() >= until)
			return false;
	}
	LIST_EACH (&store->indexes, node)
		index_free(LIST_ENTRY(node, struct index, node));
	size_t cursor = 0;
	for (struct space *space; (space = keymap_next(&store->spaces, &cursor));)
		alloc_free(space);
	alloc_free(store->chunks);
	keymap_fini(&store->entries);
	keymap_fini(&store->spaces);
	alloc_object_free(&store_type, store);
	return true;
}

void store_free(struct store *store)
{
	if (store)
		store_free_some(store, INFINITY);
}

struct object *store_get_key(const struct store *store, const char *key, size_t length)
{
	uint32_t number = find(store, key, length);
	return number ? entry_of(store, number)->object : NULL;
}

struct object *store_get(const struct store *store, const char *namespace, const char *name)
{
	char key[2 * 253 + 2];
	size_t before = namespace ? strlen(namespace) : 0, behind = strlen(name);
	if (before + 1 + behind > sizeof(key))
		return NULL;
	if (!before)
		return store_get_key(store, name, behind);
	memcpy(key, namespace, before);
	key[before] = '/';
	memcpy(key + before + 1, name, behind);
	return store_get_key(store, key, before + 1 + behind);
}

void store_begin_round(struct store *store)
{
	for (size_t i = 0; i < store->chunk_count; i++)
		store->chunks[i]->touched = 0;
}

struct object *store_touch(struct store *store, const char *key, size_t length)
{
	uint32_t number = find(store, key, length);
	if (!number)
		return NULL;
	touch(store, number);
	return entry_of(store, number)->object;
}

size_t store_count(const struct store *store)
{
	return store->entries.count;
}

size_t store_bytes(const struct store *store)
{
	return store->bytes;
}

static struct index *find_index(const struct store *store, const char *name)
{
	LIST_EACH (&store->indexes, node) {
		struct index *index = LIST_ENTRY(node, struct index, node);
		if (!strcmp(index->name, name))
			return index;
	}
	return NULL;
}

/* One that holds nothing yet. */
static void insert_index(struct store *store, struct index *index)
{
	list_add_tail(&store->indexes, &index->node);
	index->unfiled = store->order.next;
}

int store_add_index(struct store *store, const char *name, struct store_index_fn fn)
{
	if (find_index(store, name))
		return -1;
	insert_index(store, index_new(name, fn));
	return 0;
}

/* One that is filed already, as it came or changed since the index did, is filed again, to the same end. */
static bool file_until(struct store *store, struct index *index, double until)
{
	bool outer = store->filing;
	store->filing = true;
	while (index->unfiled) {
		uint32_t number = index->unfiled;
		index->unfiled = entry_of(store, number)->links[IN_ORDER].next;
		file(store, index, number);
		if (clock_now() >= until)
			break;
	}
	store->filing = outer;
	return !index->unfiled;
}

bool store_file_index(struct store *store, const char *name, double until)
{
	struct index *index = find_index(store, name);
	return !index || file_until(store, index, until);
}

void store_move_indexes(struct store *from, struct store *to)
{
	assert(!from->entries.count);
	for (struct list *node; (node = list_pop(&from->indexes));) {
		struct index *index = LIST_ENTRY(node, struct index, node);
		if (find_index(to, index->name))
			index_free(index);
		else
			insert_index(to, index);
	}
}

static void remove_index(struct store *store, struct index *index)
{
	for (size_t i = 0; i < store->chunk_count; i++) {
		if (!store->chunks[i]->postings)
			continue;
		for (unsigned at = 0; at < CHUNK_ENTRIES; at++)
			index_clear(index, &store->chunks[i]->postings[at]);
	}
	index_free(index);
}

void store_remove_index(struct store *store, const char *name)
{
	struct index *index = find_index(store, name);
	if (index)
		remove_index(store, index);
}

void store_remove_owned(struct store *store, const void *owner)
{
	LIST_EACH (&store->indexes, node) {
		struct index *index = LIST_ENTRY(node, struct index, node);
		if (index->fn.owner == owner)
			remove_index(store, index);
	}
}

bool store_has_index(const struct store *store, const char *name)
{
	return find_index(store, name) != NULL;
}

struct store_cursor store_begin(const struct store *store, const char *namespace)
{
	if (!namespace)
		return (struct store_cursor){store->order.next, false};
	const struct space *space = keymap_get(&store->spaces, namespace, strlen(namespace));
	return (struct store_cursor){space ? space->entries.next : 0, true};
}

struct object *store_next(const struct store *store, struct store_cursor *cursor, bool *missed)
{
	uint32_t number = cursor->next;
	if (!number)
		return NULL;
	const struct entry *entry = entry_of(store, number);
	cursor->next = entry->links[cursor->in_space ? IN_SPACE : IN_ORDER].next;
	if (missed)
		*missed = !(chunk_of(store, number)->touched & bit_of(number));
	return entry->object;
}

void store_each(const struct store *store, const char *namespace, store_visit_fn on_object, void *data)
{
	struct store_cursor cursor = store_begin(store, namespace);
	for (struct object *object; (object = store_next(store, &cursor, NULL));)
		if (!on_object(data, object))
			return;
}

bool store_walk(const struct store *store, uint32_t *place, uint32_t places, store_visit_fn on_object, void *data)
{
	for (; places && *place < store->used; places--) {
		struct object *object = entry_of(store, ++*place)->object;
		if (object && !on_object(data, object))
			return true;
	}
	return *place == store->used;
}

void store_each_index(struct store *store, const char *index_name, const char *value, size_t length,
		      store_visit_fn on_object, void *data)
{
	struct index *index = find_index(store, index_name);
	store_file(store, INFINITY);
	if (index && !store->filing)
		file_until(store, index, INFINITY);
	const struct index_value *found = index ? index_find(index, value, length) : NULL;
	if (!found)
		return;
	LIST_EACH (&found->postings, node) {
		const struct entry *entry = LIST_ENTRY(node, struct posting, in_value)->entry;
		if (!on_object(data, entry->object))
			return;
	}
}

/* An index over a path. */
struct emit {
	store_emit_fn fn;
	void *data;
	struct buf text;
};

static void emit_value(void *data, struct json_slice value)
{
	struct emit *emit = data;
	switch (json_type(value)) {
	case JSON_NUMBER:
	case JSON_BOOL:
		emit->fn(emit->data, value.data, value.length);
		break;
	case JSON_STRING:
		buf_reset(&emit->text);
		json_string_append(value, &emit->text);
		emit->fn(emit->data, buf_text(&emit->text), emit->text.length);
		break;
	default:
		break;
	}
}

static void path_values(void *data, struct object *object, store_emit_fn fn, void *emit_data)
{
	struct emit emit = {.fn = fn, .data = emit_data};
	struct buf scratch;
	buf_init(&emit.text, 0);
	buf_init(&scratch, 0);
	json_find_all(object_open(object, &scratch), data, emit_value, &emit);
	buf_fini(&scratch);
	buf_fini(&emit.text);
}

static void free_path(void *data)
{
	json_path_free(data);
}

struct store_index_fn store_path_index(struct json_path *path)
{
	return (struct store_index_fn){.values = path_values, .free = free_path, .data = path};
}

#ifdef PERILUNE_DEBUG
static void check_postings(const struct store *store, const struct entry *entry, const struct posting *postings)
{
	for (const struct posting *posting = postings; posting; posting = posting->next) {
		assert(posting->entry == entry && !posting->seen && !posting->value->current);
		assert(index_find(posting->index, posting->value->text, posting->value->length) == posting->value);
		assert(find_index(store, posting->index->name) == posting->index);
	}
}

static void check_entry(const struct store *store, uint32_t number)
{
	size_t length;
	const struct entry *entry = entry_of(store, number);
	const char *key = object_key(entry->object, &length);
	assert(find(store, key, length) == number);
	if (chunk_of(store, number)->postings)
		check_postings(store, entry, *postings_of(store, number));
}

static size_t check_space(const struct store *store, const struct space *space)
{
	size_t count = 0;
	uint32_t last = 0;
	for (uint32_t number = space->entries.next; number; number = entry_of(store, number)->links[IN_SPACE].next) {
		assert(entry_of(store, number)->links[IN_SPACE].prev == last);
		assert(find_space(store, entry_of(store, number)->object) == space);
		last = number;
		count++;
	}
	assert(count && count == space->count && space->entries.prev == last);
	return count;
}
#endif

void store_check(const struct store *store)
{
#ifdef PERILUNE_DEBUG
	size_t count = 0, bytes = 0, spaced = 0, cursor = 0, unfiled = 0;
	uint32_t last = 0;
	for (size_t i = 0; i < store->chunk_count; i++)
		unfiled += (size_t)__builtin_popcountll(store->chunks[i]->unfiled);
	assert(unfiled == store->unfiled);
	for (uint32_t number = store->order.next; number; number = entry_of(store, number)->links[IN_ORDER].next) {
		assert(entry_of(store, number)->links[IN_ORDER].prev == last);
		check_entry(store, number);
		bytes += object_length(entry_of(store, number)->object);
		last = number;
		count++;
	}
	for (const struct space *space; (space = keymap_next(&store->spaces, &cursor));)
		spaced += check_space(store, space);
	assert(count == store->entries.count && bytes == store->bytes && spaced == count && store->order.prev == last);
	keymap_check(&store->entries);
	keymap_check(&store->spaces);
#else
	(void)store;
#endif
}
