#include "cache/index.h"

#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(posting_type, "posting");

static const char *value_key(const void *item, size_t *length)
{
	const struct index_value *value = item;
	*length = value->length;
	return value->text;
}

struct index *index_new(const char *name, struct store_index_fn fn)
{
	struct index *index = alloc_zero(sizeof(*index));
	list_init(&index->node);
	index->name = alloc_string(name);
	index->fn = fn;
	keymap_init(&index->values, value_key);
	return index;
}

void index_free(struct index *index)
{
	list_remove(&index->node);
	if (index->fn.free)
		index->fn.free(index->fn.data);
	keymap_fini(&index->values);
	alloc_free(index->name);
	alloc_free(index);
}

const struct index_value *index_find(const struct index *index, const char *value, size_t length)
{
	return keymap_get(&index->values, value, length);
}

static struct index_value *make_value(struct index *index, const char *text, size_t length)
{
	struct index_value *value = alloc_zero(sizeof(*value) + length + 1);
	list_init(&value->postings);
	value->length = length;
	if (length)
		memcpy(value->text, text, length);
	keymap_put(&index->values, value);
	return value;
}

/* Takes *at out of its entry's list and out of its value's. */
static void drop_posting(struct posting **at)
{
	struct posting *posting = *at;
	struct index_value *value = posting->value;
	*at = posting->next;
	list_remove(&posting->in_value);
	if (list_is_empty(&value->postings)) {
		keymap_remove(&posting->index->values, value->text, value->length);
		alloc_free(value);
	}
	alloc_object_free(&posting_type, posting);
}

struct update {
	struct index *index;
	void *entry;
	struct posting **postings;
};

static struct posting *make_posting(struct update *update, struct index_value *value)
{
	struct posting *posting = alloc_object(&posting_type, sizeof(*posting));
	posting->index = update->index;
	posting->entry = update->entry;
	posting->value = value;
	posting->next = *update->postings;
	*update->postings = posting;
	list_add_tail(&value->postings, &posting->in_value);
	return posting;
}

static void file_under(void *data, const char *text, size_t length)
{
	struct update *update = data;
	struct index_value *value = keymap_get(&update->index->values, text, length);
	if (!value)
		value = make_value(update->index, text, length);
	if (!value->current)
		value->current = make_posting(update, value);
	value->current->seen = true;
}

void index_update(struct index *index, void *entry, struct object *object, struct posting **postings)
{
	struct update update = {index, entry, postings};
	for (struct posting *posting = *postings; posting; posting = posting->next)
		if (posting->index == index)
			posting->value->current = posting;
	index->fn.values(index->fn.data, object, file_under, &update);
	for (struct posting **at = postings; *at;) {
		struct posting *posting = *at;
		if (posting->index == index)
			posting->value->current = NULL;
		if (posting->index != index || posting->seen) {
			posting->seen = false;
			at = &posting->next;
		} else {
			drop_posting(at);
		}
	}
}

void index_clear(struct index *index, struct posting **postings)
{
	for (struct posting **at = postings; *at;) {
		if (!index || (*at)->index == index)
			drop_posting(at);
		else
			at = &(*at)->next;
	}
}
