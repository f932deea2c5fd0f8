/* utf8: the one judge of what is UTF-8 (RFC 3629: shortest forms, no surrogates, nothing above U+10FFFF). */
#ifndef PERILUNE_BASE_UTF8_H
#define PERILUNE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool utf8_is_tail(unsigned char c)
{
	return (c & 0xC0) == 0x80;
}

/* The length of the sequence at `at` (1 to 4), or 0 when the bytes there are invalid or cut short. Reads at most left
 * bytes. */
static inline size_t utf8_sequence(const unsigned char *at, size_t left)
{
	if (left < 1)
		return 0;
	unsigned char c = at[0];
	if (c < 0x80)
		return 1;
	if (c < 0xC2 || c > 0xF4 || left < 2)
		return 0;
	if (c < 0xE0)
		return utf8_is_tail(at[1]) ? 2 : 0;
	/* The first tail byte carries the limits: overlong forms, surrogates, U+10FFFF. */
	unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
	unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
	if (at[1] < low || at[1] > high || left < 3 || !utf8_is_tail(at[2]))
		return 0;
	if (c < 0xF0)
		return 3;
	return left >= 4 && utf8_is_tail(at[3]) ? 4 : 0;
}

/* Writes code point (at most U+10FFFF) to out, which holds 4 bytes. Returns the length. */
static inline size_t utf8_encode(uint32_t point, char *out)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xC0 | point >> 6);
		out[1] = (char)(0x80 | (point & 0x3F));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xE0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 0x3F));
		out[2] = (char)(0x80 | (point & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 0x3F));
	out[2] = (char)(0x80 | (point >> 6 & 0x3F));
	out[3] = (char)(0x80 | (point & 0x3F));
	return 4;
}

#endif
