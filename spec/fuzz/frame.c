/* Head: the sizes of chunks. Body: what a watch answers. Whole and in chunks it gives the same events, which are those
 * that reading one JSON value after another finds; and an object that is wrapped into an event comes out as it was. */
#include <string.h>

#include "kube/frame.h"
#include "support/fuzz.h"
#include "json/yaml.h"

#define LIMIT ((size_t)1 << 20)

struct outcome {
	struct buf events; /* type and object of each */
	size_t count;
	bool taken;
	struct err err;
};

static void add(struct outcome *outcome, struct json_slice type, struct json_slice object)
{
	outcome->count++;
	buf_append(&outcome->events, type.data, type.length);
	buf_append(&outcome->events, object.data, object.length);
}

static int on_event(void *data, const struct frame_event *event, struct err *err)
{
	(void)err;
	fuzz_check_outline(&event->object);
	FUZZ_CHECK(fuzz_is_json(event->object.bytes.data, event->object.bytes.length));
	FUZZ_CHECK(json_type(event->object.bytes) == JSON_OBJECT && json_type(event->type_text) == JSON_STRING);
	FUZZ_CHECK((event->type == FRAME_ADDED) == json_string_equals(event->type_text, "ADDED"));
	FUZZ_CHECK((event->type == FRAME_ERROR) == json_string_equals(event->type_text, "ERROR"));
	add(data, event->type_text, event->object.bytes);
	return 0;
}

static void init(struct outcome *outcome)
{
	*outcome = (struct outcome){.taken = true};
	buf_init(&outcome->events, 0);
}

static void run(struct outcome *outcome, struct json_slice body, const char *sizes)
{
	init(outcome);
	struct frame *frame = frame_new(LIMIT, on_event, outcome);
	struct fuzz_chunks chunks = {sizes, 0};
	int failed = 0;
	for (size_t at = 0; at < body.length && !failed;) {
		size_t length = fuzz_chunk(&chunks, body.length - at);
		failed = frame_feed(frame, body.data + at, length, &outcome->err);
		at += length;
	}
	outcome->taken = !failed && !frame_finish(frame, &outcome->err);
	frame_free(frame);
}

static bool equal(const struct outcome *a, const struct outcome *b)
{
	return a->count == b->count && a->events.length == b->events.length &&
	       !memcmp(buf_text(&a->events), buf_text(&b->events), a->events.length);
}

static int on_value(void *data, struct json_slice value, struct err *err)
{
	struct outcome *outcome = data;
	struct json_slice type = json_get(value, "type"), object = json_get(value, "object");
	if (json_type(type) != JSON_STRING || json_type(object) != JSON_OBJECT)
		return err_set(err, "", "no event");
	add(outcome, type, object);
	return 0;
}

/* JSON values one after another go through yaml_to_json as they are. */
static void check_against_scanner(struct json_slice body, const struct outcome *outcome)
{
	struct outcome plain;
	init(&plain);
	if (outcome->count && outcome->taken) {
		FUZZ_CHECK(!yaml_to_json(body.data, body.length, on_value, &plain, NULL));
		FUZZ_CHECK(equal(&plain, outcome));
	}
	buf_fini(&plain.events);
}

static void check_wrapped(struct json_slice body, const char *sizes)
{
	struct json_slice object = json_trim(body.data, body.length);
	if (json_validate(object.data, object.length, NULL) || json_type(object) != JSON_OBJECT)
		return;
	struct outcome outcome, expected;
	struct buf stream;
	buf_init(&stream, 0);
	init(&expected);
	for (int i = 0; i < 3; i++) {
		add(&expected, (struct json_slice){"\"MODIFIED\"", 10}, object);
		buf_append_text(&stream, "{\"type\":\"MODIFIED\",\"object\":");
		buf_append(&stream, object.data, object.length);
		buf_append_text(&stream, "}\n");
	}
	run(&outcome, (struct json_slice){stream.data, stream.length}, sizes);
	/* An event is one level more. */
	FUZZ_CHECK(outcome.taken ? equal(&outcome, &expected) : strstr(outcome.err.message, "deeper") != NULL);
	buf_fini(&outcome.events);
	buf_fini(&expected.events);
	buf_fini(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	struct outcome whole, chunked;
	run(&whole, input.body, "");
	run(&chunked, input.body, input.head);
	FUZZ_CHECK(whole.taken == chunked.taken);
	FUZZ_CHECK(!whole.taken || equal(&whole, &chunked));
	check_against_scanner(input.body, &whole);
	check_wrapped(input.body, input.head);
	buf_fini(&whole.events);
	buf_fini(&chunked.events);
	fuzz_input_free(&input);
	return 0;
}
