/* sweep: finds bytes of a kind many at a time: with vectors where the compiler knows them (SSE2, NEON), else with whole
 * words. PERILUNE_PLAIN takes the vectors away, so that specs can run on what other machines get. */
#ifndef PERILUNE_JSON_SWEEP_H
#define PERILUNE_JSON_SWEEP_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "many bytes at a time: the lowest byte is taken for the first"
#endif

#define SWEEP_BLOCK 64

#if defined(__SSE2__) && !defined(PERILUNE_PLAIN)
#include <emmintrin.h>

typedef __m128i sweep_lane;

static inline sweep_lane sweep_load(const char *at)
{
	return _mm_loadu_si128((const __m128i *)at);
}

static inline sweep_lane sweep_quotes(sweep_lane x)
{
	return _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')), _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
}

static inline sweep_lane sweep_equal(sweep_lane x, char c)
{
	return _mm_cmpeq_epi8(x, _mm_set1_epi8(c));
}

static inline sweep_lane sweep_with(sweep_lane x, char bits)
{
	return _mm_or_si128(x, _mm_set1_epi8(bits));
}

/* Flipping that bit puts the quote next to the controls, and a byte above 0x7F is a negative number. */
static inline sweep_lane sweep_specials(sweep_lane x)
{
	sweep_lane low = _mm_cmplt_epi8(_mm_xor_si128(x, _mm_set1_epi8(2)), _mm_set1_epi8(0x21));
	return _mm_or_si128(low, _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
}

static inline uint64_t sweep_bits(sweep_lane hits)
{
	return (unsigned)_mm_movemask_epi8(hits);
}

#elif defined(__aarch64__) && !defined(PERILUNE_PLAIN)
#include <arm_neon.h>

typedef uint8x16_t sweep_lane;

static inline sweep_lane sweep_load(const char *at)
{
	return vld1q_u8((const uint8_t *)at);
}

static inline sweep_lane sweep_quotes(sweep_lane x)
{
	return vorrq_u8(vceqq_u8(x, vdupq_n_u8('"')), vceqq_u8(x, vdupq_n_u8('\\')));
}

static inline sweep_lane sweep_equal(sweep_lane x, char c)
{
	return vceqq_u8(x, vdupq_n_u8((uint8_t)c));
}

static inline sweep_lane sweep_with(sweep_lane x, char bits)
{
	return vorrq_u8(x, vdupq_n_u8((uint8_t)bits));
}

static inline sweep_lane sweep_specials(sweep_lane x)
{
	sweep_lane outside = vcltq_s8(vreinterpretq_s8_u8(x), vdupq_n_s8(0x20));
	return vorrq_u8(outside, sweep_quotes(x));
}

static inline uint64_t sweep_bits(sweep_lane hits)
{
	static const uint8_t places[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
	sweep_lane bits = vandq_u8(hits, vld1q_u8(places));
	return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

#else

typedef uint64_t sweep_lane;

#define SWEEP_EACH(byte) (0x0101010101010101 * (uint64_t)(byte))

static inline sweep_lane sweep_load(const char *at)
{
	sweep_lane x;
	memcpy(&x, at, sizeof(x));
	return x;
}

/* A set high bit for each zero byte. */
static inline sweep_lane sweep_zeros(sweep_lane x)
{
	return ~(((x & SWEEP_EACH(0x7F)) + SWEEP_EACH(0x7F)) | x) & SWEEP_EACH(0x80);
}

static inline sweep_lane sweep_equal(sweep_lane x, char c)
{
	return sweep_zeros(x ^ SWEEP_EACH((unsigned char)c));
}

static inline sweep_lane sweep_with(sweep_lane x, char bits)
{
	return x | SWEEP_EACH((unsigned char)bits);
}

static inline sweep_lane sweep_quotes(sweep_lane x)
{
	return sweep_zeros(x ^ SWEEP_EACH('"')) | sweep_zeros(x ^ SWEEP_EACH('\\'));
}

/* A control has none of the bits from 0x20 on. */
static inline sweep_lane sweep_specials(sweep_lane x)
{
	return sweep_quotes(x) | sweep_zeros(x & SWEEP_EACH(0xE0)) | (x & SWEEP_EACH(0x80));
}

static inline uint64_t sweep_bits(sweep_lane hits)
{
	return (hits >> 7) * 0x0102040810204080 >> 56;
}
#endif

#define SWEEP_WIDTH ((int)sizeof(sweep_lane))

/* The first quote or backslash, or end. */
static inline const char *sweep_quote(const char *at, const char *end)
{
	for (; end - at >= SWEEP_WIDTH; at += SWEEP_WIDTH) {
		uint64_t bits = sweep_bits(sweep_quotes(sweep_load(at)));
		if (bits)
			return at + __builtin_ctzll(bits);
	}
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* A block of bytes and which of them are no plain text of a string: quotes, backslashes, controls and those above 0x7F.
 * Many a string ends in the block that the one before it ended in. */
struct sweep {
	const char *base; /* NULL: no block yet */
	uint64_t specials;
};

static inline uint64_t sweep_block(const char *at)
{
	uint64_t bits = 0;
#pragma GCC unroll 8
	for (int i = 0; i < SWEEP_BLOCK; i += SWEEP_WIDTH)
		bits |= sweep_bits(sweep_specials(sweep_load(at + i))) << i;
	return bits;
}

/* What the last block lacks is special, too. Inlined, its array would cost each string a check of the stack. */
__attribute__((noinline, cold, unused)) static uint64_t sweep_last_block(const char *at, const char *end)
{
	char block[SWEEP_BLOCK] = {0};
	memcpy(block, at, (size_t)(end - at));
	return sweep_block(block);
}

/* The first special byte, or end. */
static inline const char *sweep_special(struct sweep *sweep, const char *at, const char *end)
{
	for (;;) {
		uintptr_t place = (uintptr_t)at - (uintptr_t)sweep->base; /* base is NULL at first */
		if (place < SWEEP_BLOCK && sweep->specials >> place)
			return at + __builtin_ctzll(sweep->specials >> place);
		if (place < SWEEP_BLOCK)
			at = sweep->base + SWEEP_BLOCK;
		sweep->base = at;
		sweep->specials = end - at < SWEEP_BLOCK ? sweep_last_block(at, end) : sweep_block(at);
	}
}

#endif
