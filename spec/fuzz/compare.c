/* Head: a JSON value. Body: another one. Whether they are the same is what a plain comparison says, and what is cut out
 * of one to the shape of the other is in it. */
#include <string.h>

#include "base/alloc.h"
#include "support/fuzz.h"
#include "json/compare.h"

/* Objects have each key once, and nothing nests too deep for a comparison. */
static bool is_plain(struct json_slice value, int depth)
{
	if (depth > COMPARE_DEPTH - 20)
		return false;
	for (struct json_iter iter = json_iterate(value); json_next(&iter);) {
		char *key = iter.key.data ? json_string_copy(iter.key) : NULL;
		/* A key with a NUL in it can't be looked up as text. */
		bool once = !key || (json_string_equals(iter.key, key) && json_get(value, key).data == iter.value.data);
		alloc_free(key);
		if (!once || !is_plain(iter.value, depth + 1))
			return false;
	}
	return true;
}

static void check_cut(struct json_slice whole, struct json_slice shape)
{
	struct buf out;
	bool lacking = false;
	buf_init(&out, 0);
	if (!compare_cut(whole, shape, &out, &lacking)) {
		struct json_slice part = {out.data, out.length};
		FUZZ_CHECK(!json_validate(part.data, part.length, NULL));
		FUZZ_CHECK(compare_holds(whole, part));
		FUZZ_CHECK(!lacking || strstr(out.data, "null"));
	}
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	size_t length = strlen(input.head);
	struct json_slice a = json_trim(input.head, length), b = json_trim(input.body.data, input.body.length);
	if (!json_validate(a.data, a.length, NULL) && !json_validate(b.data, b.length, NULL) && is_plain(a, 0) &&
	    is_plain(b, 0)) {
		FUZZ_CHECK(compare_same(a, b) == fuzz_same(a, b));
		FUZZ_CHECK(compare_same(b, a) == fuzz_same(a, b));
		FUZZ_CHECK(!fuzz_same(a, b) || compare_holds(a, b));
		check_cut(a, b);
		check_cut(b, a);
	}
	fuzz_input_free(&input);
	return 0;
}
