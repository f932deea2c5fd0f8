/* Bytes as JSON: two judges agree; what is accepted can be walked, and each part of it is JSON itself; what is refused
 * is refused at its first wrong byte, and walking it all the same stays inside it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fuzz.h"

#define DEEPEST 64 /* of the walk through bytes that were refused */

static void check_string(struct json_slice string)
{
	struct buf content, again, quoted;
	buf_init(&content, 0);
	buf_init(&again, 0);
	buf_init(&quoted, 0);
	FUZZ_CHECK(!json_string_append(string, &content));
	buf_append_json_string(&quoted, buf_text(&content), content.length);
	struct json_slice other = {quoted.data, quoted.length};
	FUZZ_CHECK(fuzz_is_json(other.data, other.length));
	FUZZ_CHECK(!json_string_append(other, &again));
	FUZZ_CHECK(again.length == content.length && !memcmp(again.data, content.data, content.length));
	if (!memchr(content.data, '\0', content.length)) {
		FUZZ_CHECK(json_string_equals(string, content.data));
		buf_append_char(&content, 'x');
		FUZZ_CHECK(!json_string_equals(string, content.data));
	}
	buf_fini(&content);
	buf_fini(&again);
	buf_fini(&quoted);
}

static void check_number(struct json_slice number)
{
	int64_t value = 0;
	char *text = alloc_text(number.data, number.length);
	bool whole = json_integer(number, &value) == 0;
	errno = 0;
	long long expected = strtoll(text, NULL, 10);
	if (strspn(text, "-0123456789") == number.length && errno != ERANGE)
		FUZZ_CHECK(whole && value == expected);
	else
		FUZZ_CHECK(!whole);
	alloc_free(text);
}

/* Of equal keys the last one counts. */
static void check_member(struct json_slice object, struct json_slice key)
{
	struct json_slice last = {NULL, 0};
	char *name = json_string_copy(key);
	for (struct json_iter iter = json_iterate(object); json_next(&iter);)
		if (json_string_equals(iter.key, name))
			last = iter.value;
	FUZZ_CHECK(json_get(object, name).data == last.data);
	alloc_free(name);
}

static void check_value(struct json_slice value, size_t depth)
{
	if (depth < 4)
		FUZZ_CHECK(!json_validate(value.data, value.length, NULL));
	if (json_type(value) == JSON_STRING)
		check_string(value);
	if (json_type(value) == JSON_NUMBER)
		check_number(value);
	struct json_iter iter = json_iterate(value);
	for (size_t i = 0; json_next(&iter); i++) {
		if (json_type(value) == JSON_OBJECT) {
			check_value(iter.key, depth + 1);
			if (i < 8)
				check_member(value, iter.key);
		}
		FUZZ_CHECK(iter.value.data > value.data);
		check_value(iter.value, depth + 1);
	}
}

/* A value or null that means none. */
static void check_found(struct json_slice found, struct json_slice object, const char *key)
{
	struct json_slice value = json_get(object, key);
	FUZZ_CHECK(found.data == (json_type(value) == JSON_NULL ? NULL : value.data));
}

static void check_meta(struct json_slice object)
{
	struct json_meta meta;
	struct json_slice metadata = json_get(object, "metadata");
	bool has = json_meta(object, &meta) == 0;
	FUZZ_CHECK(has == (json_type(metadata) == JSON_OBJECT));
	if (!has)
		return;
	check_found(meta.kind, object, "kind");
	check_found(meta.api_version, object, "apiVersion");
	check_found(meta.name, metadata, "name");
	check_found(meta.uid, metadata, "uid");
	check_found(meta.resource_version, metadata, "resourceVersion");
	check_found(meta.labels, metadata, "labels");
}

/* No beginning of a value in brackets or quotes is a value. */
static void check_cut(struct json_slice value)
{
	if (json_type(value) >= JSON_STRING)
		for (size_t length = 0; length < value.length; length += 1 + value.length / 16)
			FUZZ_CHECK(json_validate(value.data, length, NULL));
}

static void walk_refused(struct json_slice value, size_t depth)
{
	struct json_meta meta;
	int64_t number;
	struct buf text;
	buf_init(&text, 0);
	json_string_append(value, &text);
	json_integer(value, &number);
	json_meta(value, &meta);
	json_get(value, "metadata");
	json_string_equals(value, "metadata");
	buf_fini(&text);
	for (struct json_iter iter = json_iterate(value); depth < DEEPEST && json_next(&iter);)
		walk_refused(iter.value, depth + 1);
}

/* "byte n": those before it are a value, or begin one. */
static void check_refusal(struct json_slice bytes, const struct err *err)
{
	size_t offset, again;
	struct err inner;
	FUZZ_CHECK(sscanf(err->message, "byte %zu: expected", &offset) == 1 && offset <= bytes.length);
	if (!json_validate(bytes.data, offset, &inner))
		return;
	FUZZ_CHECK(sscanf(inner.message, "byte %zu: expected", &again) == 1 && again == offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_slice bytes = {(const char *)data, size};
	struct err err;
	bool valid = json_validate(bytes.data, bytes.length, &err) == 0;
	FUZZ_CHECK(valid == fuzz_is_json(bytes.data, bytes.length));
	struct json_slice value = json_trim(bytes.data, bytes.length);
	if (valid) {
		check_value(value, 0);
		check_meta(value);
		check_cut(value);
	} else {
		check_refusal(bytes, &err);
		walk_refused(value, 0);
	}
	return 0;
}
