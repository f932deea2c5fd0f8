#include "json/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "json/lex.h"
#include "json/number.h"
#include "json/resolve.h"

#define MOST_BYTES ((size_t)64 << 20)
#define DEEPEST 512 /* collections in each other; aliases can make it more */
#define TAG "tag:yaml.org,2002:"

/* The events of the parser are written as JSON text as they come. Nothing is kept as a tree: an anchor is a copy of the
 * text of its node, an alias appends it, and a merge takes the members out of such text. */

/* A member's text ("key":value) in reader.out. */
struct member {
	size_t offset, length;
	bool merged; /* came by << */
	bool dead;   /* another of the same key has replaced it */
};

/* An open collection. */
struct frame {
	bool map;
	bool value_next; /* in a mapping: the key has been read */
	bool merging;    /* ... and was << */
	bool any_dead;
	size_t start; /* of its bracket in reader.out */
	size_t value; /* where the value being read starts */
	char *anchor;
	struct strmap keys; /* JSON text of a key to the place of its member, plus 1 */
	struct member *members;
	size_t count, capacity; /* of members; in sequences count is that of elements */
};

struct anchor {
	size_t length;
	char text[];
};

struct reader {
	yaml_parser_t parser;
	yaml_mark_t mark; /* where the current event starts */
	struct buf out;   /* the document so far */
	struct buf scratch;
	struct strmap anchors; /* name to struct anchor */
	struct frame *frames;
	size_t depth, capacity;
	size_t copied; /* bytes that anchors and merges have copied */
	bool full;     /* out has no more room */
	struct err *err;
};

/* detail is never the value of a member: that may be a secret, as in a kubeconfig. */
static int fail(struct reader *reader, const char *problem, const char *detail)
{
	return err_set(reader->err, "", "line %zu, column %zu: %s%s%s", reader->mark.line + 1, reader->mark.column + 1,
		       problem, detail ? ": " : "", detail ? detail : "");
}

static int fail_parse(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *problem = parser->problem ? parser->problem : "out of memory";
	if (parser->error == YAML_READER_ERROR)
		return err_set(reader->err, "", "byte %zu: %s", parser->problem_offset, problem);
	reader->mark = parser->problem_mark;
	return fail(reader, problem, parser->context);
}

/* Without limits on what is copied, a few lines of aliases would be gigabytes. */
static int spend(struct reader *reader, size_t bytes)
{
	reader->copied += bytes;
	return reader->copied > MOST_BYTES ? fail(reader, "anchors, aliases and merges make too much of this", NULL)
					   : 0;
}

static void put(struct reader *reader, const char *text, size_t length)
{
	if (buf_append(&reader->out, text, length))
		reader->full = true;
}

static struct frame *innermost(struct reader *reader)
{
	return reader->depth ? &reader->frames[reader->depth - 1] : NULL;
}

static void frame_fini(struct frame *frame)
{
	strmap_fini(&frame->keys);
	alloc_free(frame->members);
	alloc_free(frame->anchor);
}

static void forget_anchors(struct reader *reader)
{
	size_t cursor = 0;
	void *anchor;
	while (strmap_next(&reader->anchors, &cursor, NULL, NULL, &anchor))
		alloc_free(anchor);
	strmap_clear(&reader->anchors);
}

/* While its node is being read a name means nothing: not the node itself, and no earlier one. */
static void begin_anchor(struct reader *reader, const char *name)
{
	if (name)
		alloc_free(strmap_remove(&reader->anchors, name, strlen(name)));
}

static int end_anchor(struct reader *reader, const char *name, const char *text, size_t length)
{
	if (!name)
		return 0;
	if (spend(reader, length))
		return -1;
	struct anchor *anchor = alloc_zero(sizeof(*anchor) + length);
	anchor->length = length;
	memcpy(anchor->text, text, length);
	alloc_free(strmap_put(&reader->anchors, name, strlen(name), anchor));
	return 0;
}

static const struct anchor *find_anchor(struct reader *reader, const char *name)
{
	const struct anchor *anchor = strmap_get(&reader->anchors, name, strlen(name));
	if (!anchor)
		fail(reader, "this alias has no finished anchor before it", NULL);
	return anchor;
}

/* A key enters the mapping; its text and a colon are written. A later member replaces one that came by <<, and one
 * that comes by << replaces an earlier one, as in Go's yaml.v2; the same key written twice is an error. */
static int add_member(struct reader *reader, struct json_slice key, bool merged)
{
	struct frame *frame = innermost(reader);
	size_t before =
	    (size_t)(uintptr_t)strmap_put(&frame->keys, key.data, key.length, (void *)(uintptr_t)(frame->count + 1));
	if (before) {
		struct member *old = &frame->members[before - 1];
		if (!old->merged && !merged)
			return fail(reader, "this key is in the mapping already", buf_text(&reader->scratch));
		old->dead = frame->any_dead = true;
	}
	if (frame->count == frame->capacity) {
		frame->capacity = frame->capacity ? frame->capacity * 2 : 8;
		frame->members = alloc_resize(frame->members, frame->capacity * sizeof(*frame->members));
	}
	if (frame->count)
		put(reader, ",", 1);
	frame->members[frame->count++] = (struct member){.offset = reader->out.length, .merged = merged};
	put(reader, key.data, key.length);
	put(reader, ":", 1);
	return 0;
}

static void end_member(struct reader *reader)
{
	struct frame *frame = innermost(reader);
	struct member *member = &frame->members[frame->count - 1];
	member->length = reader->out.length - member->offset;
}

static int merge_object(struct reader *reader, struct json_slice object)
{
	if (json_type(object) != JSON_OBJECT)
		return fail(reader, "<< takes a mapping or a sequence of mappings", NULL);
	struct json_iter iter = json_iterate(object);
	while (json_next(&iter)) {
		if (spend(reader, sizeof(struct member) + iter.value.length) || add_member(reader, iter.key, true))
			return -1;
		put(reader, iter.value.data, iter.value.length);
		end_member(reader);
	}
	return 0;
}

/* Of several mappings the earlier ones count, so that they are merged last. */
static int merge_array(struct reader *reader, struct json_slice array)
{
	struct json_slice *elements = NULL;
	size_t count = 0;
	int failed = 0;
	for (struct json_iter iter = json_iterate(array); json_next(&iter);) {
		elements = alloc_resize(elements, (count + 1) * sizeof(*elements));
		elements[count++] = iter.value;
	}
	while (count && !failed)
		failed = merge_object(reader, elements[--count]);
	alloc_free(elements);
	return failed;
}

/* The value of << was written as any other; its text is taken back and its members go in. */
static int merge(struct reader *reader)
{
	struct frame *frame = innermost(reader);
	struct buf text;
	buf_init(&text, 0);
	buf_append(&text, reader->out.data + frame->value, reader->out.length - frame->value);
	reader->out.length = frame->value;
	reader->out.data[frame->value] = '\0';
	struct json_slice value = {text.data, text.length};
	int failed = json_type(value) == JSON_ARRAY ? merge_array(reader, value) : merge_object(reader, value);
	buf_fini(&text);
	return failed;
}

/* Takes the members out that others have replaced. */
static void compact(struct reader *reader, const struct frame *frame)
{
	char *start = reader->out.data + frame->start + 1, *at = start;
	for (size_t i = 0; i < frame->count; i++) {
		const struct member *member = &frame->members[i];
		if (member->dead)
			continue;
		if (at > start)
			*at++ = ',';
		memmove(at, reader->out.data + member->offset, member->length);
		at += member->length;
	}
	reader->out.length = (size_t)(at - reader->out.data);
}

static void begin_value(struct reader *reader)
{
	struct frame *frame = innermost(reader);
	if (frame && !frame->map && frame->count++)
		put(reader, ",", 1);
	if (frame)
		frame->value = reader->out.length;
}

static int end_value(struct reader *reader)
{
	struct frame *frame = innermost(reader);
	if (reader->full)
		return fail(reader, "the document is larger than 64 MiB as JSON", NULL);
	if (!frame || !frame->map)
		return 0;
	frame->value_next = false;
	if (!frame->merging) {
		end_member(reader);
		return 0;
	}
	frame->merging = false;
	return merge(reader);
}

static bool has_tag(const yaml_event_t *event, const char *tag)
{
	return event->data.scalar.tag && !strcmp((const char *)event->data.scalar.tag, tag);
}

/* The tags that say what a scalar has to be. */
static const struct {
	const char *tag, *problem;
	enum resolved meanings[2];
} scalar_tags[] = {
    {TAG "int", "this is no !!int", {RESOLVED_INT, RESOLVED_INT}},
    {TAG "float", "this is no !!float", {RESOLVED_FLOAT, RESOLVED_INT}},
    {TAG "bool", "this is no !!bool", {RESOLVED_BOOL, RESOLVED_BOOL}},
    {TAG "null", "this is no !!null", {RESOLVED_NULL, RESOLVED_NULL}},
};

/* Appends the scalar's JSON to out, which has a limit only when it is the document. Quoted ones are strings, and so are
 * those with a tag that JSON has no type for. */
static int write_scalar(struct reader *reader, const yaml_event_t *event, struct buf *out, enum resolved *meaning)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length, i = 0, count = sizeof(scalar_tags) / sizeof(scalar_tags[0]);
	*meaning = RESOLVED_STRING;
	if (has_tag(event, TAG "binary"))
		return fail(reader, "!!binary is not supported; write the base64 text as a string", NULL);
	while (i < count && !has_tag(event, scalar_tags[i].tag))
		i++;
	size_t before = out->length;
	if (i == count && (event->data.scalar.tag || !event->data.scalar.plain_implicit))
		buf_append_json_string(out, text, length);
	else
		*meaning = resolve_plain(text, length, out);
	if (*meaning == RESOLVED_NO_JSON)
		return fail(reader, "JSON has no such number", text);
	reader->full |= out->length == before;
	if (i < count && *meaning != scalar_tags[i].meanings[0] && *meaning != scalar_tags[i].meanings[1])
		return fail(reader, scalar_tags[i].problem, NULL);
	return 0;
}

/* Makes the key in scratch (a scalar's JSON) a string. */
static int make_string(struct reader *reader, enum resolved meaning)
{
	struct buf *key = &reader->scratch;
	char text[NUMBER_SIZE];
	if (key->data[0] == '"')
		return 0;
	if (key->data[0] == '{' || key->data[0] == '[' || key->data[0] == 'n')
		return fail(reader, "a key has to be a string, a number or a boolean", NULL);
	if (meaning == RESOLVED_FLOAT) {
		size_t length = number_format_key(strtod(key->data, NULL), text);
		if (!length)
			return fail(reader, "this key is too large a number", NULL);
		buf_reset(key);
		buf_append(key, text, length);
	}
	char *bare = buf_take(key);
	buf_append_format(key, "\"%s\"", bare);
	alloc_free(bare);
	return 0;
}

static bool is_merge(const yaml_event_t *event)
{
	return event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 2 &&
	       !memcmp(event->data.scalar.value, "<<", 2) &&
	       (event->data.scalar.plain_implicit || has_tag(event, TAG "merge"));
}

/* The JSON of a scalar or alias event into scratch. */
static int read_key(struct reader *reader, const yaml_event_t *event, enum resolved *meaning)
{
	buf_reset(&reader->scratch);
	*meaning = RESOLVED_STRING;
	if (event->type == YAML_ALIAS_EVENT) {
		const struct anchor *anchor = find_anchor(reader, (const char *)event->data.alias.anchor);
		return anchor ? buf_append(&reader->scratch, anchor->text, anchor->length) : -1;
	}
	const char *name = (const char *)event->data.scalar.anchor;
	begin_anchor(reader, name);
	if (write_scalar(reader, event, &reader->scratch, meaning))
		return -1;
	return end_anchor(reader, name, reader->scratch.data, reader->scratch.length);
}

static int on_key(struct reader *reader, const yaml_event_t *event)
{
	struct frame *frame = innermost(reader);
	enum resolved meaning;
	if (event->type != YAML_SCALAR_EVENT && event->type != YAML_ALIAS_EVENT)
		return fail(reader, "a key has to be a scalar", NULL);
	frame->value_next = true;
	if (is_merge(event)) {
		frame->merging = true;
		return 0;
	}
	if (read_key(reader, event, &meaning) || make_string(reader, meaning))
		return -1;
	return add_member(reader, (struct json_slice){reader->scratch.data, reader->scratch.length}, false);
}

static int on_scalar(struct reader *reader, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.scalar.anchor;
	enum resolved meaning;
	begin_value(reader);
	begin_anchor(reader, name);
	size_t start = reader->out.length;
	if (write_scalar(reader, event, &reader->out, &meaning))
		return -1;
	if (!reader->full && end_anchor(reader, name, reader->out.data + start, reader->out.length - start))
		return -1;
	return end_value(reader);
}

static int on_alias(struct reader *reader, const yaml_event_t *event)
{
	const struct anchor *anchor = find_anchor(reader, (const char *)event->data.alias.anchor);
	if (!anchor)
		return -1;
	begin_value(reader);
	put(reader, anchor->text, anchor->length);
	return end_value(reader);
}

static int on_start(struct reader *reader, bool map, const char *anchor)
{
	begin_value(reader);
	begin_anchor(reader, anchor);
	if (reader->depth == DEEPEST)
		return fail(reader, "nested too deep", NULL);
	if (reader->depth == reader->capacity) {
		reader->capacity = reader->capacity ? reader->capacity * 2 : 16;
		reader->frames = alloc_resize(reader->frames, reader->capacity * sizeof(*reader->frames));
	}
	struct frame *frame = &reader->frames[reader->depth++];
	*frame = (struct frame){.map = map, .start = reader->out.length, .anchor = alloc_string(anchor)};
	strmap_init(&frame->keys);
	put(reader, map ? "{" : "[", 1);
	return 0;
}

static int on_end(struct reader *reader)
{
	struct frame frame = *innermost(reader);
	if (frame.any_dead)
		compact(reader, &frame);
	put(reader, frame.map ? "}" : "]", 1);
	reader->depth--;
	int failed = 0;
	if (!reader->full)
		failed =
		    end_anchor(reader, frame.anchor, reader->out.data + frame.start, reader->out.length - frame.start);
	frame_fini(&frame);
	return failed ? -1 : end_value(reader);
}

static int on_event(struct reader *reader, const yaml_event_t *event)
{
	struct frame *frame = innermost(reader);
	bool end = event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
	if (frame && frame->map && !frame->value_next && !end)
		return on_key(reader, event);
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(reader, event);
	case YAML_ALIAS_EVENT:
		return on_alias(reader, event);
	case YAML_MAPPING_START_EVENT:
		return on_start(reader, true, (const char *)event->data.mapping_start.anchor);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(reader, false, (const char *)event->data.sequence_start.anchor);
	default:
		return on_end(reader);
	}
}

static void reset(struct reader *reader)
{
	while (reader->depth)
		frame_fini(&reader->frames[--reader->depth]);
	forget_anchors(reader);
	buf_reset(&reader->out);
	reader->copied = 0;
}

typedef int (*document_fn)(void *data, struct json_slice json, struct err *err);

/* Aliases may have nested deeper than any collection was. */
static int deliver(struct reader *reader, document_fn on_document, void *data)
{
	struct json_slice json = {reader->out.data, reader->out.length};
	if (json_validate(json.data, json.length, reader->err))
		return err_prefix(reader->err, "as JSON, the document that ends at line %zu", reader->mark.line + 1);
	return on_document(data, json, reader->err) ? -1 : 0;
}

static bool is_empty_document(const yaml_event_t *event)
{
	return event->type == YAML_SCALAR_EVENT && !event->data.scalar.length && event->data.scalar.plain_implicit &&
	       !event->data.scalar.tag;
}

/* One event. 1 to go on, 0 at the end of the stream, -1 with err. *empty belongs to the current document. */
static int handle(struct reader *reader, const yaml_event_t *event, bool *empty, document_fn on_document, void *data)
{
	reader->mark = event->start_mark;
	switch (event->type) {
	case YAML_STREAM_START_EVENT:
		return 1;
	case YAML_STREAM_END_EVENT:
	case YAML_NO_EVENT:
		return 0;
	case YAML_DOCUMENT_START_EVENT:
		reset(reader);
		*empty = false;
		return 1;
	case YAML_DOCUMENT_END_EVENT:
		return *empty || !deliver(reader, on_document, data) ? 1 : -1;
	default:
		if (!reader->depth)
			*empty = is_empty_document(event);
		return on_event(reader, event) ? -1 : 1;
	}
}

static int read_yaml(struct reader *reader, document_fn on_document, void *data, bool (*is_over)(void))
{
	bool empty = false;
	int went = 1;
	while (went > 0) {
		yaml_event_t event;
		if (is_over && is_over())
			return err_set(reader->err, "", "it takes too long");
		if (!yaml_parser_parse(&reader->parser, &event))
			return fail_parse(reader);
		went = handle(reader, &event, &empty, on_document, data);
		yaml_event_delete(&event);
	}
	return went;
}

/* What is JSON goes through as it is, as with kubectl: YAML reads a few of its escapes and numbers otherwise. */
static bool is_json(const char *at, const char *end)
{
	struct lex_fault fault;
	at = lex_space(at, end);
	if (at == end || (*at != '{' && *at != '['))
		return false;
	while (at && at < end)
		if ((at = lex_value(at, end, &fault)))
			at = lex_space(at, end);
	return at != NULL;
}

static int read_json(const char *at, const char *end, document_fn on_document, void *data, struct err *err)
{
	struct lex_fault fault;
	while ((at = lex_space(at, end)) < end) {
		const char *behind = lex_value(at, end, &fault); /* numbers may touch: 00 is two */
		if (on_document(data, (struct json_slice){at, (size_t)(behind - at)}, err))
			return -1;
		at = behind;
	}
	return 0;
}

int yaml_to_json_until(const char *bytes, size_t length, document_fn on_document, void *data, bool (*is_over)(void),
		       struct err *err)
{
	if (is_json(bytes, bytes + length))
		return read_json(bytes, bytes + length, on_document, data, err);
	struct reader reader = {.err = err};
	if (!yaml_parser_initialize(&reader.parser))
		return err_set(err, "", "out of memory");
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(length ? bytes : ""), length);
	buf_init(&reader.out, MOST_BYTES);
	buf_init(&reader.scratch, 0);
	strmap_init(&reader.anchors);
	int failed = read_yaml(&reader, on_document, data, is_over);
	reset(&reader);
	alloc_free(reader.frames);
	strmap_fini(&reader.anchors);
	buf_fini(&reader.scratch);
	buf_fini(&reader.out);
	yaml_parser_delete(&reader.parser);
	return failed ? -1 : 0;
}

int yaml_to_json(const char *bytes, size_t length, document_fn on_document, void *data, struct err *err)
{
	return yaml_to_json_until(bytes, length, on_document, data, NULL, err);
}
