/* lex: the inside of the scanner, for the files of core/json/ alone.
 *
 * lex_value is the one judge of what is JSON. The other functions walk bytes that it has accepted; given others they
 * may answer anything, but never read outside [at, end) and always come to an end. */
#ifndef PERILUNE_JSON_LEX_H
#define PERILUNE_JSON_LEX_H

#include <string.h>

#include "json/scan.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "eight bytes at a time: the lowest byte is taken for the first"
#endif

#define LEX_EACH(byte) (0x0101010101010101 * (uint64_t)(byte))

/* Why bytes are no JSON. */
struct lex_fault {
	const char *at;
	const char *expected;
	bool cut; /* the bytes ran out: more of them may make it right */
};

/* Reads one value, space before it allowed; returns the place behind it. NULL with fault when there is none. A number
 * that touches the end is taken as whole. */
const char *lex_value(const char *at, const char *end, struct lex_fault *fault);

/* Puts "byte n: expected …" into err. Returns -1. */
int lex_fail(struct err *err, size_t offset, const char *expected);

/* The place behind the value that starts at `at`. */
const char *lex_skip(const char *at, const char *end);

/* Decodes the escape whose backslash is at *at into out (4 bytes) and moves *at behind it. Returns the length. */
size_t lex_unescape(const char **at, const char *end, char *out);

/* json_string_equals and json_get for text that is not NUL-terminated. */
bool lex_string_is(struct json_slice string, const char *text, size_t length);
struct json_slice lex_member(struct json_slice object, const char *key, size_t length);

static inline const char *lex_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* A set high bit for each zero byte; right for the lowest one, perhaps wrong above it. */
static inline uint64_t lex_zeros(uint64_t x)
{
	return (x - LEX_EACH(1)) & ~x & LEX_EACH(0x80);
}

static inline uint64_t lex_load(const char *at)
{
	uint64_t x;
	memcpy(&x, at, sizeof(x));
	return x;
}

/* The first quote or backslash, or end. */
static inline const char *lex_quote(const char *at, const char *end)
{
	for (; end - at >= 8; at += 8) {
		uint64_t x = lex_load(at);
		uint64_t hits = lex_zeros(x ^ LEX_EACH('"')) | lex_zeros(x ^ LEX_EACH('\\'));
		if (hits)
			return at + (__builtin_ctzll(hits) >> 3);
	}
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

#endif
