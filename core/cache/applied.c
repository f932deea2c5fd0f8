#include "cache/applied.h"

#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "cache/keymap.h"
#include "json/compare.h"

ALLOC_TYPE(entry_type, "applied content");

struct entry {
	struct list node; /* in the order of use, the latest last */
	struct buf key, content, answer;
	bool lacking; /* the answer had no value in places where the content has an empty one */
	char *uid;
};

struct applied {
	struct keymap by_key;
	struct list entries;
	size_t bytes, most_bytes;
};

static const char *entry_key(const void *item, size_t *length)
{
	const struct entry *entry = item;
	*length = entry->key.length;
	return entry->key.data;
}

struct applied *applied_new(size_t most_bytes)
{
	struct applied *applied = alloc_zero(sizeof(*applied));
	keymap_init(&applied->by_key, entry_key);
	list_init(&applied->entries);
	applied->most_bytes = most_bytes;
	return applied;
}

static size_t size_of(const struct entry *entry)
{
	return sizeof(*entry) + entry->key.capacity + entry->content.capacity + entry->answer.capacity;
}

/* It may be a Secret. */
static void wipe(struct buf *buf)
{
	if (buf->data)
		explicit_bzero(buf->data, buf->length);
	buf_fini(buf);
}

static void free_entry(struct entry *entry)
{
	wipe(&entry->content);
	wipe(&entry->answer);
	buf_fini(&entry->key);
	alloc_free(entry->uid);
	alloc_object_free(&entry_type, entry);
}

static void drop(struct applied *applied, struct entry *entry)
{
	applied->bytes -= size_of(entry);
	list_remove(&entry->node);
	keymap_remove(&applied->by_key, entry->key.data, entry->key.length);
	free_entry(entry);
}

void applied_free(struct applied *applied)
{
	if (!applied)
		return;
	while (!list_is_empty(&applied->entries))
		drop(applied, LIST_ENTRY(applied->entries.next, struct entry, node));
	keymap_fini(&applied->by_key);
	alloc_free(applied);
}

void applied_forget(struct applied *applied, struct json_slice key)
{
	struct entry *entry = keymap_get(&applied->by_key, key.data, key.length);
	if (entry)
		drop(applied, entry);
}

static void copy(struct buf *buf, struct json_slice bytes)
{
	buf_init(buf, 0);
	buf_append(buf, bytes.data, bytes.length);
}

void applied_put(struct applied *applied, struct json_slice key, struct json_slice content, struct json_slice answer)
{
	struct entry *entry = alloc_object(&entry_type, sizeof(*entry));
	applied_forget(applied, key);
	copy(&entry->key, key);
	copy(&entry->content, content);
	buf_init(&entry->answer, 0);
	entry->uid = json_string_copy(json_get(json_get(answer, "metadata"), "uid"));
	if (!entry->uid || compare_cut(answer, content, &entry->answer, &entry->lacking) ||
	    size_of(entry) > applied->most_bytes) {
		free_entry(entry);
		return;
	}
	applied->bytes += size_of(entry);
	list_add_tail(&applied->entries, &entry->node);
	keymap_put(&applied->by_key, entry);
	while (applied->bytes > applied->most_bytes)
		drop(applied, LIST_ENTRY(applied->entries.next, struct entry, node));
}

static struct json_slice slice_of(const struct buf *buf)
{
	return (struct json_slice){buf->data, buf->length};
}

bool applied_knows(struct applied *applied, struct json_slice key, struct json_slice content)
{
	struct entry *entry = keymap_get(&applied->by_key, key.data, key.length);
	if (!entry || !compare_same(slice_of(&entry->content), content))
		return false;
	list_remove(&entry->node);
	list_add_tail(&applied->entries, &entry->node);
	return true;
}

bool applied_agrees(const struct applied *applied, struct json_slice key, const struct object *object, bool whole)
{
	const struct entry *entry = keymap_get(&applied->by_key, key.data, key.length);
	if (!entry || (entry->lacking && !whole) || !object_has_uid(object, entry->uid))
		return false;
	struct buf scratch;
	buf_init(&scratch, 0);
	struct json_slice bytes = object_open(object, &scratch);
	struct json_slice deleted = json_get(json_get(bytes, "metadata"), "deletionTimestamp");
	bool agrees =
	    (!deleted.data || json_type(deleted) == JSON_NULL) && compare_holds(bytes, slice_of(&entry->answer));
	buf_fini(&scratch);
	return agrees;
}
