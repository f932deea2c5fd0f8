/* Head: the sizes of chunks, behind a digit for the limit of an item. Body: a list. Whole and in chunks it gives the
 * same items, and it is taken exactly when it is JSON with at most one "items" that is an array or null. */
#include <string.h>

#include "support/fuzz.h"
#include "json/split.h"

struct outcome {
	struct buf items; /* each with a NUL behind it */
	struct buf rest;
	bool taken;
	struct err err;
};

static int on_item(void *data, const struct outline *outline, struct err *err)
{
	(void)err;
	struct outcome *outcome = data;
	struct json_slice item = outline->bytes;
	fuzz_check_outline(outline);
	FUZZ_CHECK(fuzz_is_json(item.data, item.length));
	buf_append(&outcome->items, item.data, item.length);
	buf_append_char(&outcome->items, '\0');
	return 0;
}

static void run(struct outcome *outcome, struct json_slice body, size_t limit, const char *sizes)
{
	buf_init(&outcome->items, 0);
	buf_init(&outcome->rest, 0);
	struct split *split = split_new(limit, on_item, outcome);
	struct fuzz_chunks chunks = {sizes, 0};
	int failed = 0;
	for (size_t at = 0; at < body.length && !failed;) {
		size_t length = fuzz_chunk(&chunks, body.length - at);
		failed = split_feed(split, body.data + at, length, &outcome->err);
		at += length;
	}
	outcome->taken = !failed && !split_finish(split, &outcome->err);
	if (outcome->taken) {
		struct json_slice rest = split_rest(split);
		FUZZ_CHECK(fuzz_is_json(rest.data, rest.length) && split_bytes(split) == body.length);
		buf_append(&outcome->rest, rest.data, rest.length);
	}
	split_free(split);
}

static void fini(struct outcome *outcome)
{
	buf_fini(&outcome->items);
	buf_fini(&outcome->rest);
}

static bool equal(const struct buf *a, const struct buf *b)
{
	return a->length == b->length && !memcmp(buf_text(a), buf_text(b), a->length);
}

/* Of a list that is refused the items before the fault may be told or not, as far as the chunks were read. */
static void check_outcomes(const struct outcome *whole, const struct outcome *chunked)
{
	size_t shorter = whole->items.length < chunked->items.length ? whole->items.length : chunked->items.length;
	FUZZ_CHECK(whole->taken == chunked->taken);
	FUZZ_CHECK(!memcmp(buf_text(&whole->items), buf_text(&chunked->items), shorter));
	FUZZ_CHECK(!whole->taken || (equal(&whole->items, &chunked->items) && equal(&whole->rest, &chunked->rest)));
}

static bool is_list(struct json_slice object)
{
	size_t lists = 0;
	if (json_type(object) != JSON_OBJECT)
		return false;
	for (struct json_iter iter = json_iterate(object); json_next(&iter);)
		if (json_string_equals(iter.key, "items")) {
			lists++;
			if (json_type(iter.value) != JSON_ARRAY && json_type(iter.value) != JSON_NULL)
				return false;
		}
	return lists <= 1;
}

static void check_against_scanner(struct json_slice body, const struct outcome *outcome)
{
	struct err err;
	if (json_validate(body.data, body.length, &err)) {
		/* Items are judged by themselves, so they may nest a little deeper. */
		FUZZ_CHECK(!outcome->taken || strstr(err.message, "no deeper nesting"));
		return;
	}
	struct json_slice object = json_trim(body.data, body.length);
	FUZZ_CHECK(outcome->taken == is_list(object));
	if (!outcome->taken)
		return;
	const char *item = buf_text(&outcome->items);
	for (struct json_iter iter = json_iterate(json_get(object, "items")); json_next(&iter);) {
		FUZZ_CHECK(strlen(item) == iter.value.length && !memcmp(item, iter.value.data, iter.value.length));
		item += iter.value.length + 1;
	}
	FUZZ_CHECK(item == buf_text(&outcome->items) + outcome->items.length);
	struct json_path *items = json_path_new("items", NULL);
	struct buf others;
	buf_init(&others, 0);
	struct outline outline = outline_of(object);
	FUZZ_CHECK(!outline_drop(&outline, &items, 1, &others));
	FUZZ_CHECK(fuzz_same((struct json_slice){others.data, others.length},
			     (struct json_slice){outcome->rest.data, outcome->rest.length}));
	buf_fini(&others);
	json_path_free(items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	bool limited = *input.head >= '1' && *input.head <= '9';
	size_t limit = limited ? (size_t)(*input.head - '0') * 8 : 0;
	struct outcome whole, chunked;
	run(&whole, input.body, limit, "");
	run(&chunked, input.body, limit, input.head);
	check_outcomes(&whole, &chunked);
	if (!limited)
		check_against_scanner(input.body, &whole);
	fini(&whole);
	fini(&chunked);
	fuzz_input_free(&input);
	return 0;
}
