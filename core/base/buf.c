#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define SMALLEST 64

void buf_init(struct buf *buf, size_t limit)
{
	*buf = (struct buf){.limit = limit};
}

void buf_fini(struct buf *buf)
{
	alloc_free(buf->data);
	buf_init(buf, buf->limit);
}

static void set_length(struct buf *buf, size_t length)
{
	buf->length = length;
	if (buf->data)
		buf->data[length] = '\0';
}

void buf_reset(struct buf *buf)
{
	set_length(buf, 0);
}

/* With a limit the size is a peer's choice, so that running out of memory is an answer and not the end. */
static int set_capacity(struct buf *buf, size_t capacity)
{
	if (!buf->limit) {
		buf->data = alloc_resize(buf->data, capacity);
	} else {
		char *data = alloc_try(capacity);
		if (!data)
			return -1;
		if (buf->length)
			memcpy(data, buf->data, buf->length);
		alloc_free(buf->data);
		buf->data = data;
	}
	buf->capacity = capacity;
	buf->data[buf->length] = '\0';
	return 0;
}

char *buf_reserve(struct buf *buf, size_t extra)
{
	if (buf->limit && (buf->length > buf->limit || extra > buf->limit - buf->length))
		return NULL;
	if (extra < buf->capacity - buf->length)
		return buf->data + buf->length;
	size_t needed = buf->length + extra + 1;
	if (needed <= extra)
		needed = SIZE_MAX; /* no such memory: let the allocator say so */
	size_t capacity = buf->capacity < SMALLEST / 2 ? SMALLEST : buf->capacity * 2;
	if (buf->limit && capacity > buf->limit)
		capacity = buf->limit + 1;
	if (capacity < needed)
		capacity = needed;
	return set_capacity(buf, capacity) ? NULL : buf->data + buf->length;
}

int buf_append(struct buf *buf, const void *bytes, size_t length)
{
	char *room = buf_reserve(buf, length);
	if (!room)
		return -1;
	if (length)
		memcpy(room, bytes, length);
	set_length(buf, buf->length + length);
	return 0;
}

int buf_append_text(struct buf *buf, const char *text)
{
	return buf_append(buf, text, strlen(text));
}

int buf_append_char(struct buf *buf, char c)
{
	char *room = buf_reserve(buf, 1);
	if (!room)
		return -1;
	room[0] = c;
	room[1] = '\0';
	buf->length++;
	return 0;
}

int buf_append_format(struct buf *buf, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	char *room = length < 0 ? NULL : buf_reserve(buf, (size_t)length);
	if (room) {
		vsnprintf(room, (size_t)length + 1, format, again);
		buf->length += (size_t)length;
	}
	va_end(again);
	va_end(args);
	return room ? 0 : -1;
}

/* C1 controls and DEL are escaped too: some terminals obey them, and JSON means the same either way. */
static int append_control(struct buf *buf, unsigned char c)
{
	static const char short_forms[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
	if (c == '"' || c == '\\')
		return buf_append(buf, (char[]){'\\', (char)c}, 2);
	if (c < 0x20 && short_forms[c])
		return buf_append(buf, (char[]){'\\', short_forms[c]}, 2);
	return buf_append_format(buf, "\\u%04x", c);
}

#define EACH(byte) (0x0101010101010101 * (uint64_t)(byte))

static uint64_t zero_bytes(uint64_t x)
{
	return (x - EACH(1)) & ~x & EACH(0x80);
}

/* Whether none of eight bytes is more than it seems: a control, a quote, a backslash, DEL or beyond ASCII. */
static bool is_plain(const unsigned char *at)
{
	uint64_t x;
	memcpy(&x, at, sizeof(x));
	uint64_t outside = (x | (x - EACH(0x20)) | (x + EACH(1))) & EACH(0x80);
	return !(outside | zero_bytes(x ^ EACH('"')) | zero_bytes(x ^ EACH('\\')));
}

/* How many bytes from `at` need no escape. */
static size_t plain_run(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *start = at;
	while (at < end) {
		if (end - at >= 8 && is_plain(at)) {
			at += 8;
			continue;
		}
		if (*at < 0x20 || *at == '"' || *at == '\\' || *at == 0x7F)
			break;
		if (*at < 0x80) {
			at++;
			continue;
		}
		size_t sequence = utf8_sequence(at, (size_t)(end - at));
		if (!sequence || (at[0] == 0xC2 && at[1] < 0xA0))
			break;
		at += sequence;
	}
	return (size_t)(at - start);
}

static int append_escaped(struct buf *buf, const unsigned char *at, const unsigned char *end)
{
	while (at < end) {
		size_t plain = plain_run(at, end);
		if (buf_append(buf, at, plain))
			return -1;
		at += plain;
		if (at == end)
			return 0;
		size_t sequence = utf8_sequence(at, (size_t)(end - at));
		if (sequence ? append_control(buf, at[sequence - 1]) : buf_append(buf, "\xEF\xBF\xBD", 3))
			return -1;
		at += sequence ? sequence : 1;
	}
	return 0;
}

int buf_append_json_string(struct buf *buf, const char *bytes, size_t length)
{
	size_t before = buf->length;
	const unsigned char *start = (const unsigned char *)bytes;
	if (!buf_append_char(buf, '"') && !append_escaped(buf, start, start + length) && !buf_append_char(buf, '"'))
		return 0;
	set_length(buf, before);
	return -1;
}

void buf_consume(struct buf *buf, size_t length)
{
	if (!length)
		return;
	memmove(buf->data, buf->data + length, buf->length - length);
	set_length(buf, buf->length - length);
}

const char *buf_text(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
	char *data = buf->data ? buf->data : alloc_text("", 0);
	buf_init(buf, buf->limit);
	return data;
}
