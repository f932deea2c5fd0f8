#include "json/yaml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/lex.h"
#include "json/resolve.h"

/* Laid out as kubectl prints: two columns a level, and a sequence in a mapping starts in the mapping's own column. */

/* The parser looks no further than 1024 characters for the colon behind a key; longer keys are written with '?'. */
#define LONGEST_KEY 500

/* What is deeper is refused, as in k8s.json.encode. */
#define DEEPEST 512

/* Deep objects grow by their indentation. */
#define MOST_BYTES ((size_t)128 << 20)

struct emitter {
	struct buf out;  /* so far; what does not fit is left away, and found at the end of the line */
	struct buf text; /* the string being written, unescaped */
	struct err *err;
	bool full;
};

static void put(struct emitter *emitter, const char *bytes, size_t length)
{
	if (buf_append(&emitter->out, bytes, length))
		emitter->full = true;
}

static void put_text(struct emitter *emitter, const char *text)
{
	put(emitter, text, strlen(text));
}

static void indent(struct emitter *emitter, size_t column)
{
	static const char spaces[] = "                                ";
	for (; column >= sizeof(spaces); column -= sizeof(spaces) - 1)
		put(emitter, spaces, sizeof(spaces) - 1);
	put(emitter, spaces, column);
}

/* The characters that YAML takes as line breaks or refuses where they stand bare, though JSON does not mind: U+0085 and
 * its kind are escaped by buf_append_json_string; these are left. */
static bool is_odd(const unsigned char *at, size_t left)
{
	if (left < 3)
		return false;
	if (at[0] == 0xE2)
		return at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9); /* U+2028, U+2029 */
	if (at[0] == 0xEF)
		return (at[1] == 0xBB && at[2] == 0xBF) ||
		       (at[1] == 0xBF && at[2] >= 0xBE); /* U+FEFF, U+FFFE, U+FFFF */
	return false;
}

/* No control but a line feed or a tab, and nothing odd: what a block scalar can hold. */
static bool is_readable(const struct buf *text)
{
	const unsigned char *bytes = (const unsigned char *)text->data;
	for (size_t i = 0; i < text->length; i++) {
		unsigned char c = bytes[i];
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || is_odd(bytes + i, text->length - i))
			return false;
		if (c == 0xC2 && bytes[i + 1] < 0xA0) /* C1; the text is valid UTF-8 and ends in NUL */
			return false;
	}
	return true;
}

/* Numbers of base 60 and dates are strings for kubectl, but not for every reader. */
static bool looks_like_time(const char *text)
{
	size_t digits = strspn(text + (*text == '-' || *text == '+'), "0123456789_");
	text += digits + (*text == '-' || *text == '+');
	return digits && (*text == ':' || (digits == 4 && *text == '-'));
}

static bool is_plain(const struct buf *buf)
{
	const char *text = buf->data;
	size_t length = buf->length;
	if (!length || text[0] == ' ' || text[length - 1] == ' ' || text[length - 1] == ':')
		return false;
	if (strchr("?:,[]{}#&*!|>'\"%@`=<", text[0]) || (text[0] == '-' && (length == 1 || text[1] == ' ')))
		return false;
	if (!strncmp(text, "---", 3) || !strncmp(text, "...", 3) || looks_like_time(text))
		return false;
	if (!is_readable(buf) || memchr(text, '\n', length) || memchr(text, '\t', length))
		return false;
	return !strstr(text, ": ") && !strstr(text, " #") && resolve_plain(text, length, NULL) == RESOLVED_STRING;
}

static bool is_block(const struct buf *text)
{
	const char *start = text->data, *end = start + text->length;
	if (!text->length || !memchr(start, '\n', text->length) || !is_readable(text))
		return false;
	const char *last = end; /* the last line that is not empty has to show where it ends */
	while (last > start && last[-1] == '\n')
		last--;
	return last > start && last[-1] != ' ' && last[-1] != '\t';
}

/* "|" with what the reader has to know: the indentation, where the first line hides it, and what becomes of the last
 * line feeds. */
static void write_block(struct emitter *emitter, size_t column)
{
	const struct buf *text = &emitter->text;
	const char *at = text->data, *end = at + text->length;
	bool hidden = *at == ' ' || *at == '\n' || *at == '\t';
	bool feed = end[-1] == '\n', feeds = feed && end[-2] == '\n';
	put_text(emitter, hidden ? "|2" : "|");
	put_text(emitter, feeds ? "+\n" : feed ? "\n" : "-\n");
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end ? line_end : end;
		if (line_end > at)
			indent(emitter, column);
		put(emitter, at, (size_t)(line_end - at));
		put(emitter, "\n", 1);
		at = line_end + 1;
	}
}

static void write_quoted(struct emitter *emitter)
{
	struct buf json;
	buf_init(&json, 0);
	buf_append_json_string(&json, emitter->text.data, emitter->text.length);
	const unsigned char *at = (const unsigned char *)json.data, *end = at + json.length, *bare = at;
	for (; at < end; at++) {
		if (!is_odd(at, (size_t)(end - at)))
			continue;
		char escape[8];
		snprintf(escape, sizeof(escape), "\\u%X",
			 (at[0] & 0xFu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu));
		put(emitter, (const char *)bare, (size_t)(at - bare));
		put_text(emitter, escape);
		at += 2;
		bare = at + 1;
	}
	put(emitter, (const char *)bare, (size_t)(end - bare));
	buf_fini(&json);
}

static void load(struct emitter *emitter, struct json_slice string)
{
	buf_reset(&emitter->text);
	json_string_append(string, &emitter->text);
}

/* One line: plain where that reads back, else in double quotes. */
static void write_line(struct emitter *emitter)
{
	if (is_plain(&emitter->text))
		put(emitter, emitter->text.data, emitter->text.length);
	else
		write_quoted(emitter);
}

static void write_key(struct emitter *emitter, struct json_slice key, size_t column)
{
	load(emitter, key);
	bool is_long = emitter->text.length > LONGEST_KEY;
	if (is_long)
		put_text(emitter, "? ");
	write_line(emitter);
	if (is_long) {
		put_text(emitter, "\n");
		indent(emitter, column);
	}
	put_text(emitter, ":");
}

static int write_number(struct emitter *emitter, struct json_slice number)
{
	buf_reset(&emitter->text);
	buf_append(&emitter->text, number.data, number.length);
	if (!isfinite(strtod(emitter->text.data, NULL)))
		return err_set(emitter->err, "", "the number %.40s is too large", emitter->text.data);
	put(emitter, number.data, number.length);
	return 0;
}

/* A scalar or an empty collection, and the end of its line. column is where a block's lines go. */
static int write_scalar(struct emitter *emitter, struct json_slice value, size_t column)
{
	switch (json_type(value)) {
	case JSON_STRING:
		load(emitter, value);
		if (is_block(&emitter->text)) {
			write_block(emitter, column);
			return 0;
		}
		write_line(emitter);
		break;
	case JSON_NUMBER:
		if (write_number(emitter, value))
			return -1;
		break;
	case JSON_OBJECT:
		put_text(emitter, "{}");
		break;
	case JSON_ARRAY:
		put_text(emitter, "[]");
		break;
	default:
		put(emitter, value.data, value.length);
	}
	put_text(emitter, "\n");
	return 0;
}

static bool is_full(struct json_slice value)
{
	struct json_iter iter = json_iterate(value);
	return json_next(&iter);
}

static int write_collection(struct emitter *emitter, struct json_slice value, size_t column, size_t depth);

static int write_member(struct emitter *emitter, struct json_iter *iter, size_t column, size_t depth)
{
	write_key(emitter, iter->key, column);
	if (!is_full(iter->value)) {
		put_text(emitter, " ");
		return write_scalar(emitter, iter->value, column + 2);
	}
	bool sequence = json_type(iter->value) == JSON_ARRAY;
	size_t inner = sequence ? column : column + 2;
	put_text(emitter, "\n");
	indent(emitter, inner);
	return write_collection(emitter, iter->value, inner, depth + 1);
}

static int write_element(struct emitter *emitter, struct json_slice value, size_t column, size_t depth)
{
	put_text(emitter, "- ");
	if (!is_full(value))
		return write_scalar(emitter, value, column + 2);
	return write_collection(emitter, value, column + 2, depth + 1);
}

/* The first line's indentation has been written. Recursion goes as deep as DEEPEST. */
static int write_collection(struct emitter *emitter, struct json_slice value, size_t column, size_t depth)
{
	bool map = json_type(value) == JSON_OBJECT;
	struct json_iter iter = json_iterate(value);
	if (depth > DEEPEST)
		return err_set(emitter->err, "", "nested too deep");
	for (bool first = true; json_next(&iter); first = false) {
		if (!first)
			indent(emitter, column);
		if (map ? write_member(emitter, &iter, column, depth)
			: write_element(emitter, iter.value, column, depth))
			return -1;
		if (emitter->full)
			return err_set(emitter->err, "TooLarge", "the YAML is larger than %zu MiB", MOST_BYTES >> 20);
	}
	return 0;
}

int yaml_from_json(struct json_slice json, struct buf *out, struct err *err)
{
	struct emitter emitter = {.err = err};
	buf_init(&emitter.out, MOST_BYTES);
	buf_init(&emitter.text, 0);
	int failed = is_full(json) ? write_collection(&emitter, json, 0, 1) : write_scalar(&emitter, json, 2);
	if (!failed && (emitter.full || buf_append(out, emitter.out.data, emitter.out.length)))
		failed = err_set(err, "TooLarge", "the YAML has no room");
	buf_fini(&emitter.text);
	buf_fini(&emitter.out);
	return failed;
}
