#include "json/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"
#include "json/lex.h"

static bool is_escaped(struct json_slice string)
{
	return memchr(string.data, '\\', string.length) != NULL;
}

static bool same_bytes(struct json_slice a, struct json_slice b)
{
	return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

static bool same_string(struct json_slice a, struct json_slice b)
{
	if (same_bytes(a, b))
		return true;
	if (!is_escaped(a) && !is_escaped(b))
		return false;
	struct buf text;
	buf_init(&text, 0);
	json_string_append(a, &text);
	bool same = lex_string_is(b, buf_text(&text), text.length);
	buf_fini(&text);
	return same;
}

static double number_of(struct json_slice number)
{
	char text[64];
	size_t length = number.length < sizeof(text) ? number.length : sizeof(text) - 1;
	memcpy(text, number.data, length);
	text[length] = '\0';
	return strtod(text, NULL);
}

static bool same_number(struct json_slice a, struct json_slice b)
{
	int64_t x, y;
	if (same_bytes(a, b))
		return true;
	if (!json_integer(a, &x) && !json_integer(b, &y))
		return x == y;
	return number_of(a) == number_of(b);
}

/* Finds members of one object, one after another. It goes on behind the one that was found last, as both objects mostly
 * come in the same order. Where they don't, it makes a map once it has gone around for long: a large object in another
 * order must not cost its square. */
struct finder {
	struct json_slice object;
	struct json_iter iter;
	size_t vain;       /* members seen on second rounds */
	struct strmap map; /* key to the first byte of its value */
};

#define MOST_VAIN 2000

static void finder_init(struct finder *finder, struct json_slice object)
{
	*finder = (struct finder){.object = object, .iter = json_iterate(object)};
	strmap_init(&finder->map);
}

static void finder_fini(struct finder *finder)
{
	strmap_fini(&finder->map);
}

static void make_map(struct finder *finder)
{
	struct buf key;
	buf_init(&key, 0);
	finder->iter = json_iterate(finder->object);
	while (json_next(&finder->iter)) {
		buf_reset(&key);
		json_string_append(finder->iter.key, &key);
		strmap_put(&finder->map, buf_text(&key), key.length, (void *)finder->iter.value.data);
	}
	buf_fini(&key);
}

static bool find_mapped(const struct finder *finder, struct json_slice key, struct json_slice *value)
{
	struct buf text;
	buf_init(&text, 0);
	json_string_append(key, &text);
	value->data = strmap_get(&finder->map, buf_text(&text), text.length);
	buf_fini(&text);
	if (!value->data)
		return false;
	const char *end = finder->object.data + finder->object.length;
	value->length = (size_t)(lex_skip(value->data, end) - value->data);
	return true;
}

static bool find_around(struct finder *finder, struct json_slice key)
{
	while (json_next(&finder->iter))
		if (same_string(finder->iter.key, key))
			return true;
	finder->iter = json_iterate(finder->object);
	while (json_next(&finder->iter)) {
		finder->vain++;
		if (same_string(finder->iter.key, key))
			return true;
	}
	return false;
}

static bool find(struct finder *finder, struct json_slice key, struct json_slice *value)
{
	if (finder->map.count)
		return find_mapped(finder, key, value);
	bool found = find_around(finder, key);
	*value = finder->iter.value;
	if (finder->vain > MOST_VAIN)
		make_map(finder);
	return found;
}

static size_t count_members(struct json_slice container)
{
	struct json_iter iter = json_iterate(container);
	size_t count = 0;
	while (json_next(&iter))
		count++;
	return count;
}

static bool same(struct json_slice a, struct json_slice b, int depth);

static bool same_elements(struct json_slice a, struct json_slice b, int depth)
{
	struct json_iter x = json_iterate(a), y = json_iterate(b);
	while (json_next(&x))
		if (!json_next(&y) || !same(x.value, y.value, depth))
			return false;
	return !json_next(&y);
}

static bool same_members(struct json_slice a, struct json_slice b, int depth)
{
	struct json_iter iter = json_iterate(a);
	struct json_slice value;
	struct finder finder;
	bool all = count_members(a) == count_members(b);
	finder_init(&finder, b);
	while (all && json_next(&iter))
		all = find(&finder, iter.key, &value) && same(iter.value, value, depth);
	finder_fini(&finder);
	return all;
}

static bool same(struct json_slice a, struct json_slice b, int depth)
{
	enum json_type type = json_type(a);
	if (type != json_type(b) || depth > COMPARE_DEPTH)
		return false;
	switch (type) {
	case JSON_OBJECT:
		return same_bytes(a, b) || same_members(a, b, depth + 1);
	case JSON_ARRAY:
		return same_bytes(a, b) || same_elements(a, b, depth + 1);
	case JSON_STRING:
		return same_string(a, b);
	case JSON_NUMBER:
		return same_number(a, b);
	case JSON_NONE:
		return true;
	default:
		return same_bytes(a, b);
	}
}

bool compare_same(struct json_slice a, struct json_slice b)
{
	return same(a, b, 0);
}

static bool holds(struct json_slice whole, struct json_slice part, int depth);

static bool holds_members(struct json_slice whole, struct json_slice part, int depth)
{
	struct json_iter wanted = json_iterate(part);
	struct json_slice value;
	struct finder finder;
	bool all = true;
	finder_init(&finder, whole);
	while (all && json_next(&wanted))
		all = find(&finder, wanted.key, &value) ? holds(value, wanted.value, depth)
							: json_type(wanted.value) == JSON_NULL;
	finder_fini(&finder);
	return all;
}

static bool holds(struct json_slice whole, struct json_slice part, int depth)
{
	if (json_type(part) != JSON_OBJECT || json_type(whole) != JSON_OBJECT)
		return same(whole, part, depth);
	return depth <= COMPARE_DEPTH && holds_members(whole, part, depth + 1);
}

bool compare_holds(struct json_slice whole, struct json_slice part)
{
	return holds(whole, part, 0);
}

/* One cut under way. */
struct cut {
	struct buf *out;
	bool *lacking;
};

static int cut_value(const struct cut *cut, struct json_slice whole, struct json_slice shape, int depth);

static bool is_empty(struct json_slice value, int depth)
{
	struct json_iter iter = json_iterate(value);
	switch (json_type(value)) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return !json_bool(value, true);
	case JSON_NUMBER:
		return number_of(value) == 0;
	case JSON_STRING:
		return value.length == 2;
	case JSON_ARRAY:
		return !json_next(&iter);
	default:
		while (json_next(&iter))
			if (depth > COMPARE_DEPTH || !is_empty(iter.value, depth + 1))
				return false;
		return true;
	}
}

static int append_key(struct buf *out, struct json_slice key)
{
	bool first = out->data[out->length - 1] == '{';
	if (!first && buf_append_char(out, ','))
		return -1;
	return buf_append(out, key.data, key.length) || buf_append_char(out, ':') ? -1 : 0;
}

/* In the order of whole, so that a comparison with a newer one takes one pass. */
static int cut_present(const struct cut *cut, struct json_slice whole, struct json_slice shape, int depth)
{
	struct json_iter iter = json_iterate(whole);
	struct json_slice wanted;
	struct finder finder;
	bool failed = false;
	finder_init(&finder, shape);
	while (!failed && json_next(&iter))
		if (find(&finder, iter.key, &wanted))
			failed = append_key(cut->out, iter.key) || cut_value(cut, iter.value, wanted, depth);
	finder_fini(&finder);
	return failed ? -1 : 0;
}

static int cut_lacking(const struct cut *cut, struct json_slice whole, struct json_slice shape, int depth)
{
	struct json_iter wanted = json_iterate(shape);
	struct json_slice value;
	struct finder finder;
	bool failed = false;
	finder_init(&finder, whole);
	while (!failed && json_next(&wanted)) {
		if (find(&finder, wanted.key, &value))
			continue;
		failed = !is_empty(wanted.value, depth) || append_key(cut->out, wanted.key) ||
			 buf_append_text(cut->out, "null");
		*cut->lacking = true;
	}
	finder_fini(&finder);
	return failed ? -1 : 0;
}

static int cut_value(const struct cut *cut, struct json_slice whole, struct json_slice shape, int depth)
{
	if (depth > COMPARE_DEPTH)
		return -1;
	if (json_type(whole) != JSON_OBJECT || json_type(shape) != JSON_OBJECT)
		return buf_append(cut->out, whole.data, whole.length);
	return buf_append_char(cut->out, '{') || cut_present(cut, whole, shape, depth + 1) ||
		       cut_lacking(cut, whole, shape, depth + 1) || buf_append_char(cut->out, '}')
		   ? -1
		   : 0;
}

int compare_cut(struct json_slice whole, struct json_slice shape, struct buf *out, bool *lacking)
{
	bool unused;
	struct cut cut = {out, lacking ? lacking : &unused};
	return cut_value(&cut, whole, shape, 0);
}
