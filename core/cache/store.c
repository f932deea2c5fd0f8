#include "cache/store.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "cache/index.h"

ALLOC_TYPE(store_type, "store");

/* A namespace's objects, in the store's order. None is empty. */
struct space {
	struct list entries;
	size_t count;
	size_t length;
	char name[];
};

/* One key. 64 bytes, from chunks. */
struct entry {
	struct object *object; /* NULL for a free one */
	struct list in_order;  /* of the store, or of the free ones */
	struct list in_space;
	struct space *space;
	struct posting *postings;
	uint32_t round; /* the last that it belongs to */
};

#define CHUNK_ENTRIES 63
struct chunk {
	struct chunk *next;
	struct entry entries[CHUNK_ENTRIES];
};

struct store {
	struct keymap entries; /* by the object's key */
	struct list order;
	struct keymap spaces;
	struct list indexes;
	struct chunk *chunks;
	struct list free;
	size_t bytes;
	uint32_t round;
};

static const char *entry_key(const void *item, size_t *length)
{
	const struct entry *entry = item;
	return object_key(entry->object, length);
}

static const char *space_key(const void *item, size_t *length)
{
	const struct space *space = item;
	*length = space->length;
	return space->name;
}

struct store *store_new(void)
{
	struct store *store = alloc_object(&store_type, sizeof(*store));
	keymap_init(&store->entries, entry_key);
	keymap_init(&store->spaces, space_key);
	list_init(&store->order);
	list_init(&store->indexes);
	list_init(&store->free);
	return store;
}

static struct entry *take_entry(struct store *store)
{
	if (list_is_empty(&store->free)) {
		struct chunk *chunk = alloc_zero(sizeof(*chunk));
		chunk->next = store->chunks;
		store->chunks = chunk;
		for (size_t i = 0; i < CHUNK_ENTRIES; i++)
			list_add_tail(&store->free, &chunk->entries[i].in_order);
	}
	return LIST_ENTRY(list_pop(&store->free), struct entry, in_order);
}

static struct space *space_of(struct store *store, const struct object *object)
{
	size_t length;
	const char *name = object_namespace(object, &length);
	struct space *space = keymap_get(&store->spaces, name, length);
	if (space)
		return space;
	space = alloc_zero(sizeof(*space) + length + 1);
	list_init(&space->entries);
	space->length = length;
	memcpy(space->name, name, length);
	keymap_put(&store->spaces, space);
	return space;
}

static void leave_space(struct store *store, struct entry *entry)
{
	struct space *space = entry->space;
	list_remove(&entry->in_space);
	if (--space->count)
		return;
	keymap_remove(&store->spaces, space->name, space->length);
	alloc_free(space);
}

static void update_indexes(struct store *store, struct entry *entry)
{
	LIST_EACH (&store->indexes, node)
		index_update(LIST_ENTRY(node, struct index, node), entry, entry->object, &entry->postings);
}

static void insert(struct store *store, struct object *object)
{
	struct entry *entry = take_entry(store);
	entry->object = object_ref(object);
	entry->round = store->round;
	entry->space = space_of(store, object);
	entry->space->count++;
	list_add_tail(&entry->space->entries, &entry->in_space);
	list_add_tail(&store->order, &entry->in_order);
	keymap_put(&store->entries, entry);
	store->bytes += object_length(object);
	update_indexes(store, entry);
}

static struct entry *find(const struct store *store, const char *key, size_t length)
{
	return keymap_get(&store->entries, key, length);
}

struct object *store_put(struct store *store, struct object *object)
{
	size_t length;
	const char *key = object_key(object, &length);
	struct entry *entry = find(store, key, length);
	if (!entry) {
		insert(store, object);
		return NULL;
	}
	struct object *before = entry->object;
	entry->object = object_ref(object);
	entry->round = store->round;
	store->bytes += object_length(object) - object_length(before);
	update_indexes(store, entry);
	return before;
}

struct object *store_remove(struct store *store, const char *key, size_t length)
{
	struct entry *entry = keymap_remove(&store->entries, key, length);
	if (!entry)
		return NULL;
	struct object *object = entry->object;
	index_clear(NULL, &entry->postings);
	leave_space(store, entry);
	list_remove(&entry->in_order);
	entry->object = NULL;
	list_add_tail(&store->free, &entry->in_order);
	store->bytes -= object_length(object);
	return object;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	LIST_EACH (&store->order, node) {
		size_t length;
		const char *key = entry_key(LIST_ENTRY(node, struct entry, in_order), &length);
		object_unref(store_remove(store, key, length));
	}
	LIST_EACH (&store->indexes, node)
		index_free(LIST_ENTRY(node, struct index, node));
	for (struct chunk *chunk = store->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		alloc_free(chunk);
	}
	keymap_fini(&store->entries);
	keymap_fini(&store->spaces);
	alloc_object_free(&store_type, store);
}

struct object *store_get_key(const struct store *store, const char *key, size_t length)
{
	struct entry *entry = find(store, key, length);
	return entry ? entry->object : NULL;
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
	store->round++;
}

struct object *store_touch(struct store *store, const char *key, size_t length)
{
	struct entry *entry = find(store, key, length);
	if (!entry)
		return NULL;
	entry->round = store->round;
	return entry->object;
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

static bool note_unfiled(void *data, struct object *object)
{
	struct index *index = data;
	index->unfiled[index->unfiled_count++] = object_ref(object);
	return true;
}

/* One that holds nothing yet. */
static void insert_index(struct store *store, struct index *index)
{
	list_add_tail(&store->indexes, &index->node);
	if (!store->entries.count)
		return;
	index->next = index->unfiled_count = 0;
	index->unfiled = alloc_zero(store->entries.count * sizeof(*index->unfiled));
	store_each(store, NULL, note_unfiled, index);
}

int store_add_index(struct store *store, const char *name, struct store_index_fn fn)
{
	if (find_index(store, name))
		return -1;
	insert_index(store, index_new(name, fn));
	return 0;
}

/* The entry may hold another object by now, or be gone; one that is filed already is filed again, to the same end. */
static void file_one(const struct store *store, struct index *index)
{
	struct object *object = index->unfiled[index->next++];
	size_t length;
	const char *key = object_key(object, &length);
	struct entry *entry = find(store, key, length);
	if (entry)
		index_update(index, entry, entry->object, &entry->postings);
	object_unref(object);
}

static bool file_until(const struct store *store, struct index *index, double until)
{
	while (index->unfiled && index->next < index->unfiled_count) {
		file_one(store, index);
		if (clock_now() >= until)
			break;
	}
	if (index->unfiled && index->next < index->unfiled_count)
		return false;
	index_forget_unfiled(index);
	return true;
}

bool store_file_index(struct store *store, const char *name, double until)
{
	struct index *index = find_index(store, name);
	return !index || file_until(store, index, until);
}

void store_move_indexes(struct store *from, struct store *to)
{
	assert(list_is_empty(&from->order));
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
	LIST_EACH (&store->order, node)
		index_clear(index, &LIST_ENTRY(node, struct entry, in_order)->postings);
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

static void each_in_order(const struct store *store, bool missed, store_visit_fn on_object, void *data)
{
	LIST_EACH (&store->order, node) {
		const struct entry *entry = LIST_ENTRY(node, struct entry, in_order);
		if ((!missed || entry->round != store->round) && !on_object(data, entry->object))
			return;
	}
}

static void each_of(const struct store *store, const char *namespace, bool missed, store_visit_fn on_object, void *data)
{
	if (!namespace) {
		each_in_order(store, missed, on_object, data);
		return;
	}
	const struct space *space = keymap_get(&store->spaces, namespace, strlen(namespace));
	if (!space)
		return;
	LIST_EACH (&space->entries, node) {
		const struct entry *entry = LIST_ENTRY(node, struct entry, in_space);
		if ((!missed || entry->round != store->round) && !on_object(data, entry->object))
			return;
	}
}

void store_each(const struct store *store, const char *namespace, store_visit_fn on_object, void *data)
{
	each_of(store, namespace, false, on_object, data);
}

void store_each_missed(const struct store *store, const char *namespace, store_visit_fn on_object, void *data)
{
	each_of(store, namespace, true, on_object, data);
}

void store_each_index(struct store *store, const char *index_name, const char *value, size_t length,
		      store_visit_fn on_object, void *data)
{
	struct index *index = find_index(store, index_name);
	if (index)
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

static void check_postings(const struct store *store, const struct entry *entry)
{
	(void)store; /* without assertions */
	for (const struct posting *posting = entry->postings; posting; posting = posting->next) {
		assert(posting->entry == entry && !posting->seen && !posting->value->current);
		assert(index_find(posting->index, posting->value->text, posting->value->length) == posting->value);
		assert(find_index(store, posting->index->name) == posting->index);
	}
}

void store_check(const struct store *store)
{
#ifdef PERILUNE_DEBUG
	size_t count = 0, bytes = 0, spaced = 0;
	LIST_EACH (&store->order, node) {
		const struct entry *entry = LIST_ENTRY(node, struct entry, in_order);
		size_t length;
		const char *key = object_key(entry->object, &length);
		assert(find(store, key, length) == entry);
		size_t space;
		const char *name = object_namespace(entry->object, &space);
		assert(entry->space->length == space && !memcmp(entry->space->name, name, space));
		check_postings(store, entry);
		bytes += object_length(entry->object);
		count++;
	}
	size_t cursor = 0;
	for (const struct space *space; (space = keymap_next(&store->spaces, &cursor));) {
		assert(space->count);
		spaced += space->count;
	}
	keymap_check(&store->entries);
	keymap_check(&store->spaces);
	assert(count == store->entries.count && bytes == store->bytes && spaced == count);
#else
	(void)store, (void)check_postings;
#endif
}
