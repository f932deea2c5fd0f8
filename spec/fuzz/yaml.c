/* Bytes as YAML: each document is JSON, and means the same after it was written as YAML and read again. What is JSON
 * goes through as it is, and read as YAML all the same it is refused or means the same. */
#include <string.h>

#include "base/alloc.h"
#include "support/fuzz.h"
#include "json/yaml.h"

struct reading {
	struct buf json;
	size_t count;
};

static int on_document(void *data, struct json_slice json, struct err *err)
{
	(void)err;
	struct reading *reading = data;
	FUZZ_CHECK(fuzz_is_json(json.data, json.length));
	if (!reading->count++)
		buf_append(&reading->json, json.data, json.length);
	return 0;
}

/* False when it was refused. Of several documents the first is kept. */
static bool read_yaml(struct json_slice bytes, struct reading *reading)
{
	struct err err;
	reading->count = 0;
	buf_init(&reading->json, 0);
	err_clear(&err);
	bool taken = yaml_to_json(bytes.data, bytes.length, on_document, reading, &err) == 0;
	FUZZ_CHECK(taken || *err.message);
	return taken;
}

static struct json_slice slice_of(const struct buf *buf)
{
	return (struct json_slice){buf_text(buf), buf->length};
}

static bool has_equal_keys(struct json_slice value)
{
	for (struct json_iter iter = json_iterate(value); json_next(&iter);) {
		char *key = json_string_copy(iter.key);
		bool found = key && json_string_equals(iter.key, key) && json_get(value, key).data != iter.value.data;
		alloc_free(key);
		if (found || has_equal_keys(iter.value))
			return true;
	}
	return false;
}

/* False when it can't be YAML: a number above all doubles would be read as text. */
static bool check_written(struct json_slice json)
{
	struct buf yaml;
	struct reading again;
	struct err err;
	buf_init(&yaml, 0);
	bool written = yaml_from_json(json, &yaml, &err) == 0;
	if (!written) {
		FUZZ_CHECK(strstr(err.message, "is too large") || strstr(err.message, "nested too deep"));
	} else {
		bool taken = read_yaml(slice_of(&yaml), &again);
		FUZZ_CHECK(taken || has_equal_keys(json));
		FUZZ_CHECK(!taken || (again.count == 1 && fuzz_same(json, slice_of(&again.json))));
		buf_fini(&again.json);
	}
	buf_fini(&yaml);
	return written;
}

/* What YAML 1.1 takes for the end of a line, also inside quotes: U+0085, U+2028, U+2029. */
static bool has_odd_break(struct json_slice json)
{
	return memmem(json.data, json.length, "\xC2\x85", 2) || memmem(json.data, json.length, "\xE2\x80\xA8", 3) ||
	       memmem(json.data, json.length, "\xE2\x80\xA9", 3);
}

/* Behind a comment it is no JSON any more. */
static void check_as_yaml(struct json_slice json)
{
	struct buf text;
	struct reading again;
	if (has_odd_break(json))
		return;
	buf_init(&text, 0);
	buf_append_text(&text, "#\n");
	buf_append(&text, json.data, json.length);
	if (read_yaml(slice_of(&text), &again))
		FUZZ_CHECK(again.count == 1 && fuzz_same(json, slice_of(&again.json)));
	buf_fini(&again.json);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_slice bytes = {(const char *)data, size}, value = json_trim(bytes.data, bytes.length);
	struct reading reading;
	bool json = !json_validate(value.data, value.length, NULL) && json_type(value) >= JSON_ARRAY;
	bool taken = read_yaml(bytes, &reading);
	bool written = taken && reading.count && check_written(slice_of(&reading.json));
	if (json) {
		FUZZ_CHECK(taken && reading.count == 1 && reading.json.length == value.length);
		FUZZ_CHECK(!memcmp(reading.json.data, value.data, value.length));
		if (written)
			check_as_yaml(value);
	}
	buf_fini(&reading.json);
	return 0;
}
