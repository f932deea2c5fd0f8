#include "json/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "json/lex.h"
#include "json/sweep.h"

int json_validate(const char *bytes, size_t length, struct err *err)
{
	const char *end = bytes + length;
	struct lex_fault fault;
	const char *behind = lex_value(bytes, end, &fault);
	if (!behind)
		return lex_fail(err, (size_t)(fault.at - bytes), fault.expected);
	behind = lex_space(behind, end);
	return behind == end ? 0 : lex_fail(err, (size_t)(behind - bytes), "the end");
}

struct json_slice json_trim(const char *bytes, size_t length)
{
	const char *start = lex_space(bytes, bytes + length);
	const char *end = bytes + length;
	while (end > start && lex_space(end - 1, end) == end)
		end--;
	return (struct json_slice){start, (size_t)(end - start)};
}

enum json_type json_type(struct json_slice value)
{
	if (!value.data || !value.length)
		return JSON_NONE;
	switch (value.data[0]) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_NUMBER;
	}
}

struct json_iter json_iterate(struct json_slice container)
{
	enum json_type type = json_type(container);
	struct json_iter iter = {0};
	if ((type != JSON_OBJECT && type != JSON_ARRAY) || container.length < 2)
		return iter;
	iter.at = container.data + 1;
	iter.end = container.data + container.length - 1; /* the closing bracket, which tells the kind */
	return iter;
}

/* The value at iter->at becomes slice, and iter moves behind it. False when there is none. */
static bool take(struct json_iter *iter, struct json_slice *slice)
{
	const char *start = lex_space(iter->at, iter->end);
	const char *behind = lex_skip(start, iter->end);
	iter->at = behind;
	*slice = (struct json_slice){start, (size_t)(behind - start)};
	return behind > start;
}

bool json_next(struct json_iter *iter)
{
	if (iter->at == iter->end)
		return false;
	iter->at = lex_space(iter->at, iter->end);
	if (iter->at < iter->end && *iter->at == ',')
		iter->at++;
	if (*iter->end == '}') {
		if (!take(iter, &iter->key))
			return false;
		iter->at = lex_space(iter->at, iter->end);
		if (iter->at < iter->end)
			iter->at++; /* the colon */
	}
	return take(iter, &iter->value);
}

/* The unit of the \u escape at `at`; -1 when none starts there. */
static int32_t escaped_unit(const char *at, const char *end)
{
	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	uint32_t unit = 0;
	for (int i = 2; i < 6; i++)
		unit = (unit << 4 & 0xFFF0) | (((uint32_t)at[i] + (at[i] > '9' ? 9 : 0)) & 0xF);
	return (int32_t)unit;
}

size_t lex_unescape(const char **at, const char *end, char *out)
{
	static const char meaning[0x80] = {['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
	const char *start = *at;
	int32_t high = escaped_unit(start, end);
	if (high < 0) {
		*at = end - start < 2 ? end : start + 2;
		unsigned char letter = end - start < 2 ? '\\' : (unsigned char)start[1];
		out[0] = letter < 0x80 && meaning[letter] ? meaning[letter] : (char)letter;
		return 1;
	}
	int32_t low = high >= 0xD800 && high <= 0xDBFF ? escaped_unit(start + 6, end) : -1;
	*at = start + (low < 0 ? 6 : 12);
	if (low < 0)
		return utf8_encode((uint32_t)high, out);
	return utf8_encode(0x10000 + ((uint32_t)(high & 0x3FF) << 10 | (uint32_t)(low & 0x3FF)), out);
}

/* Compares text with the content of a string that has escapes. */
static bool unescaped_is(const char *at, const char *end, const char *text, size_t length)
{
	char decoded[4];
	while (at < end) {
		const char *piece = at;
		size_t count = 1;
		if (*at == '\\') {
			piece = decoded;
			count = lex_unescape(&at, end, decoded);
		} else {
			at++;
		}
		if (count > length || memcmp(piece, text, count) != 0)
			return false;
		text += count;
		length -= count;
	}
	return length == 0;
}

bool lex_string_same(struct json_slice string, const char *text, size_t length)
{
	if (string.length < length + 2 || string.data[0] != '"')
		return false;
	const char *content = string.data + 1;
	size_t content_length = string.length - 2;
	if (content_length == length) /* an escape would make the content shorter than its text */
		return !memcmp(content, text, length) && !memchr(text, '\\', length);
	return memchr(content, '\\', content_length) && unescaped_is(content, content + content_length, text, length);
}

bool json_string_equals(struct json_slice string, const char *text)
{
	return lex_string_is(string, text, strlen(text));
}

int json_string_append(struct json_slice string, struct buf *out)
{
	if (json_type(string) != JSON_STRING || string.length < 2)
		return -1;
	char *room = buf_reserve(out, string.length - 2); /* unescaping never makes it longer */
	if (!room)
		return -1;
	const char *at = string.data + 1, *end = string.data + string.length - 1;
	while (at < end) {
		const char *stop = sweep_quote(at, end);
		memcpy(room, at, (size_t)(stop - at));
		room += stop - at;
		at = stop;
		if (at < end && *at == '"') /* not in a string that was validated */
			*room++ = *at++;
		else if (at < end)
			room += lex_unescape(&at, end, room);
	}
	out->length = (size_t)(room - out->data);
	*room = '\0';
	return 0;
}

char *json_string_copy(struct json_slice string)
{
	struct buf buf;
	buf_init(&buf, 0);
	return json_string_append(string, &buf) ? NULL : buf_take(&buf);
}

bool json_bool(struct json_slice value, bool fallback)
{
	return json_type(value) == JSON_BOOL ? value.data[0] == 't' : fallback;
}

int json_integer(struct json_slice value, int64_t *out)
{
	if (json_type(value) != JSON_NUMBER)
		return -1;
	const char *at = value.data, *end = at + value.length;
	bool negative = *at == '-';
	uint64_t sum = 0, most = (uint64_t)INT64_MAX + negative;
	for (at += negative; at < end; at++) {
		if (*at < '0' || *at > '9')
			return -1;
		uint64_t digit = (uint64_t)(*at - '0');
		if (sum > (most - digit) / 10)
			return -1;
		sum = sum * 10 + digit;
	}
	*out = negative ? (int64_t)(0 - sum) : (int64_t)sum;
	return 0;
}

struct json_slice lex_member(struct json_slice object, const char *key, size_t length)
{
	struct json_slice found = {NULL, 0};
	if (json_type(object) != JSON_OBJECT)
		return found;
	struct json_iter iter = json_iterate(object);
	while (json_next(&iter))
		if (lex_string_is(iter.key, key, length))
			found = iter.value;
	return found;
}

struct json_slice json_get(struct json_slice object, const char *key)
{
	return lex_member(object, key, strlen(key));
}
