#include "json/outline.h"

#include "json/lex.h"

struct outline outline_of(struct json_slice value)
{
	return (struct outline){.bytes = value};
}

struct outline_iter outline_iterate(const struct outline *outline)
{
	struct outline_iter iter = {.of = *outline};
	if (!outline->base)
		iter.walk = json_iterate(outline->bytes);
	return iter;
}

bool outline_next(struct outline_iter *iter)
{
	struct outline *of = &iter->of;
	if (!of->base) {
		bool found = json_next(&iter->walk);
		iter->key = iter->walk.key;
		iter->value = outline_of(iter->walk.value);
		return found;
	}
	if (of->first == of->last)
		return false;
	const struct outline_note *note = &of->notes[of->first];
	const char *end = of->base + note->behind_value, *colon = lex_space(of->base + note->behind_key, end);
	iter->key = (struct json_slice){of->base + note->key, note->behind_key - note->key};
	iter->value = outline_of(json_trim(colon + 1, (size_t)(end - colon - 1)));
	if (note->open) {
		iter->value.base = of->base;
		iter->value.notes = of->notes;
		iter->value.first = of->first + 1;
		iter->value.last = note->next;
	}
	of->first = note->next;
	return true;
}

struct json_slice outline_get(const struct outline *object, const char *key)
{
	struct json_slice found = {NULL, 0};
	if (json_type(object->bytes) != JSON_OBJECT)
		return found;
	struct outline_iter iter = outline_iterate(object);
	while (outline_next(&iter))
		if (json_string_equals(iter.key, key))
			found = iter.value.bytes;
	return found;
}

struct wanted {
	const char *key;
	size_t length;
	struct json_slice *slice;
	struct outline *outline; /* NULL: not needed */
};

/* null says the same as an absent member, as in Go; and a later member of the same key replaces an earlier one. */
static void take(const struct wanted *wanted, const struct outline *value)
{
	bool null = json_type(value->bytes) == JSON_NULL;
	*wanted->slice = null ? (struct json_slice){NULL, 0} : value->bytes;
	if (wanted->outline)
		*wanted->outline = *value;
}

static void collect(const struct outline *object, const struct wanted *wanted, size_t count)
{
	struct outline_iter iter = outline_iterate(object);
	while (outline_next(&iter)) {
		size_t i = 0;
		while (i < count && !lex_string_is(iter.key, wanted[i].key, wanted[i].length))
			i++;
		if (i < count)
			take(&wanted[i], &iter.value);
	}
}

#define WANTED(text, member, outline)                                                                                  \
	{                                                                                                              \
		text, sizeof(text) - 1, &out->member, outline                                                          \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int outline_meta(const struct outline *object, struct json_meta *out)
{
	*out = (struct json_meta){0};
	struct outline metadata;
	const struct wanted top[] = {
	    WANTED("apiVersion", api_version, NULL),
	    WANTED("kind", kind, NULL),
	    WANTED("metadata", metadata, &metadata),
	};
	const struct wanted inner[] = {
	    WANTED("name", name, NULL),
	    WANTED("namespace", namespace, NULL),
	    WANTED("uid", uid, NULL),
	    WANTED("resourceVersion", resource_version, NULL),
	    WANTED("generation", generation, NULL),
	    WANTED("labels", labels, NULL),
	    WANTED("deletionTimestamp", deletion_timestamp, NULL),
	    WANTED("annotations", annotations, NULL),
	};
	if (json_type(object->bytes) != JSON_OBJECT)
		return -1;
	collect(object, top, COUNT(top));
	if (json_type(out->metadata) != JSON_OBJECT)
		return -1;
	collect(&metadata, inner, COUNT(inner));
	return 0;
}

int json_meta(struct json_slice object, struct json_meta *out)
{
	struct outline outline = outline_of(object);
	return outline_meta(&outline, out);
}
