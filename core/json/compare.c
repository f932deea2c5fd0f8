#include "json/compare.h"

#include <stdlib.h>
#include <string.h>

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

/* The member of that key; the search goes on behind the one that was found last, and then once around. */
static bool find_next(struct json_iter *iter, struct json_slice object, struct json_slice key)
{
	while (json_next(iter))
		if (same_string(iter->key, key))
			return true;
	*iter = json_iterate(object);
	while (json_next(iter))
		if (same_string(iter->key, key))
			return true;
	return false;
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
	struct json_iter x = json_iterate(a), y = json_iterate(b);
	while (json_next(&x))
		if (!find_next(&y, b, x.key) || !same(x.value, y.value, depth))
			return false;
	return count_members(a) == count_members(b);
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

static bool holds_member(struct json_iter *iter, struct json_slice whole, const struct json_iter *wanted, int depth)
{
	if (!find_next(iter, whole, wanted->key))
		return json_type(wanted->value) == JSON_NULL;
	return holds(iter->value, wanted->value, depth);
}

static bool holds(struct json_slice whole, struct json_slice part, int depth)
{
	if (json_type(part) != JSON_OBJECT || json_type(whole) != JSON_OBJECT)
		return same(whole, part, depth);
	if (depth > COMPARE_DEPTH)
		return false;
	struct json_iter wanted = json_iterate(part), iter = json_iterate(whole);
	while (json_next(&wanted))
		if (!holds_member(&iter, whole, &wanted, depth + 1))
			return false;
	return true;
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
	struct json_iter iter = json_iterate(whole), wanted = json_iterate(shape);
	while (json_next(&iter))
		if (find_next(&wanted, shape, iter.key) &&
		    (append_key(cut->out, iter.key) || cut_value(cut, iter.value, wanted.value, depth)))
			return -1;
	return 0;
}

static int cut_lacking(const struct cut *cut, struct json_slice whole, struct json_slice shape, int depth)
{
	struct json_iter iter = json_iterate(whole), wanted = json_iterate(shape);
	while (json_next(&wanted)) {
		if (find_next(&iter, whole, wanted.key))
			continue;
		if (!is_empty(wanted.value, depth) || append_key(cut->out, wanted.key) ||
		    buf_append_text(cut->out, "null"))
			return -1;
		*cut->lacking = true;
	}
	return 0;
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
