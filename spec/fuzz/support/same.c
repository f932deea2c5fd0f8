#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "fuzz.h"

static double to_double(struct json_slice number)
{
	char *text = alloc_text(number.data, number.length);
	double value = strtod(text, NULL);
	alloc_free(text);
	return value;
}

static bool same_numbers(struct json_slice a, struct json_slice b)
{
	int64_t left, right;
	if (!json_integer(a, &left) && !json_integer(b, &right))
		return left == right;
	return to_double(a) == to_double(b);
}

static bool same_strings(struct json_slice a, struct json_slice b)
{
	struct buf left, right;
	buf_init(&left, 0);
	buf_init(&right, 0);
	FUZZ_CHECK(!json_string_append(a, &left) && !json_string_append(b, &right));
	bool same = left.length == right.length && !memcmp(left.data, right.data, left.length);
	buf_fini(&left);
	buf_fini(&right);
	return same;
}

static bool same_arrays(struct json_slice a, struct json_slice b)
{
	struct json_iter left = json_iterate(a), right = json_iterate(b);
	while (json_next(&left))
		if (!json_next(&right) || !fuzz_same(left.value, right.value))
			return false;
	return !json_next(&right);
}

/* Keys to copies of the slices of their values. */
static void index_members(struct strmap *map, struct json_slice object)
{
	struct buf key;
	strmap_init(map);
	buf_init(&key, 0);
	for (struct json_iter iter = json_iterate(object); json_next(&iter);) {
		buf_reset(&key);
		FUZZ_CHECK(!json_string_append(iter.key, &key));
		alloc_free(strmap_put(map, buf_text(&key), key.length, alloc_copy(&iter.value, sizeof(iter.value))));
	}
	buf_fini(&key);
}

static void forget_members(struct strmap *map)
{
	size_t cursor = 0;
	void *value;
	while (strmap_next(map, &cursor, NULL, NULL, &value))
		alloc_free(value);
	strmap_fini(map);
}

static bool same_objects(struct json_slice a, struct json_slice b)
{
	struct strmap left, right;
	index_members(&left, a);
	index_members(&right, b);
	bool same = left.count == right.count;
	size_t cursor = 0, length;
	const char *key;
	void *value;
	while (same && strmap_next(&left, &cursor, &key, &length, &value)) {
		const struct json_slice *other = strmap_get(&right, key, length);
		same = other && fuzz_same(*(const struct json_slice *)value, *other);
	}
	forget_members(&left);
	forget_members(&right);
	return same;
}

bool fuzz_same(struct json_slice a, struct json_slice b)
{
	if (json_type(a) != json_type(b))
		return false;
	switch (json_type(a)) {
	case JSON_NUMBER:
		return same_numbers(a, b);
	case JSON_STRING:
		return same_strings(a, b);
	case JSON_ARRAY:
		return same_arrays(a, b);
	case JSON_OBJECT:
		return same_objects(a, b);
	case JSON_BOOL:
		return json_bool(a, false) == json_bool(b, false);
	default:
		return true;
	}
}
