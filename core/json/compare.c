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

static bool holds(struct json_slice whole, struct json_slice part, int depth)
{
	if (json_type(part) != JSON_OBJECT || json_type(whole) != JSON_OBJECT)
		return same(whole, part, depth);
	if (depth > COMPARE_DEPTH)
		return false;
	struct json_iter wanted = json_iterate(part), iter = json_iterate(whole);
	while (json_next(&wanted))
		if (!find_next(&iter, whole, wanted.key) || !holds(iter.value, wanted.value, depth + 1))
			return false;
	return true;
}

bool compare_holds(struct json_slice whole, struct json_slice part)
{
	return holds(whole, part, 0);
}

static int cut(struct json_slice whole, struct json_slice shape, struct buf *out, int depth);

static int cut_members(struct json_slice whole, struct json_slice shape, struct buf *out, int depth)
{
	struct json_iter iter = json_iterate(whole), wanted = json_iterate(shape);
	int failed = buf_append_char(out, '{');
	for (bool first = true; !failed && json_next(&iter);) {
		if (!find_next(&wanted, shape, iter.key))
			continue;
		failed = (!first && buf_append_char(out, ',')) || buf_append(out, iter.key.data, iter.key.length) ||
			 buf_append_char(out, ':') || cut(iter.value, wanted.value, out, depth);
		first = false;
	}
	return failed ? -1 : buf_append_char(out, '}');
}

static int cut(struct json_slice whole, struct json_slice shape, struct buf *out, int depth)
{
	if (depth > COMPARE_DEPTH)
		return -1;
	if (json_type(whole) == JSON_OBJECT && json_type(shape) == JSON_OBJECT)
		return cut_members(whole, shape, out, depth + 1);
	return buf_append(out, whole.data, whole.length);
}

int compare_cut(struct json_slice whole, struct json_slice shape, struct buf *out)
{
	return cut(whole, shape, out, 0);
}
