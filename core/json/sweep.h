/* sweep: the first byte of a kind in a run of bytes, sixteen at a time where the compiler knows vectors (SSE2, NEON),
 * else eight. PERILUNE_PLAIN takes the vectors away, so that specs can run on what other machines get. */
#ifndef PERILUNE_JSON_SWEEP_H
#define PERILUNE_JSON_SWEEP_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "many bytes at a time: the lowest byte is taken for the first"
#endif

#define SWEEP_EACH(byte) (0x0101010101010101 * (uint64_t)(byte))

/* A set high bit for each zero byte; right for the lowest one, perhaps wrong above it. */
static inline uint64_t sweep_zeros(uint64_t x)
{
	return (x - SWEEP_EACH(1)) & ~x & SWEEP_EACH(0x80);
}

static inline uint64_t sweep_quotes(uint64_t x)
{
	return sweep_zeros(x ^ SWEEP_EACH('"')) | sweep_zeros(x ^ SWEEP_EACH('\\'));
}

static inline uint64_t sweep_load(const char *at)
{
	uint64_t x;
	memcpy(&x, at, sizeof(x));
	return x;
}

#if (defined(__SSE2__) || defined(__ARM_NEON)) && !defined(PERILUNE_PLAIN)
#ifdef __SSE2__
#include <emmintrin.h>
#else
#include <arm_neon.h>
#endif

#define SWEEP_WIDTH 16

typedef signed char sweep_vector __attribute__((vector_size(SWEEP_WIDTH)));

static inline sweep_vector sweep_load_vector(const char *at)
{
	sweep_vector x;
	memcpy(&x, at, sizeof(x));
	return x;
}

/* The place of the first byte of hits that is 0xFF, or SWEEP_WIDTH; the others are 0. Without a branch, as strings end
 * anywhere. */
static inline unsigned sweep_first(sweep_vector hits)
{
#ifdef __SSE2__
	return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8((__m128i)hits) | 1u << SWEEP_WIDTH);
#else
	uint64_t nibbles = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16((uint16x8_t)hits, 4)), 0);
	return nibbles ? (unsigned)__builtin_ctzll(nibbles) >> 2 : SWEEP_WIDTH;
#endif
}

static inline unsigned sweep_step_quote(const char *at)
{
	sweep_vector x = sweep_load_vector(at);
	return sweep_first((x == '"') | (x == '\\'));
}

/* A byte above 0x7F is a negative number. */
static inline unsigned sweep_step_special(const char *at)
{
	sweep_vector x = sweep_load_vector(at);
	return sweep_first((x == '"') | (x == '\\') | (x < ' '));
}

#else
#define SWEEP_WIDTH 8

static inline unsigned sweep_first(uint64_t hits)
{
	return hits ? (unsigned)__builtin_ctzll(hits) >> 3 : SWEEP_WIDTH;
}

static inline unsigned sweep_step_quote(const char *at)
{
	return sweep_first(sweep_quotes(sweep_load(at)));
}

static inline unsigned sweep_step_special(const char *at)
{
	uint64_t x = sweep_load(at);
	return sweep_first(sweep_quotes(x) | (((x - SWEEP_EACH(0x20)) | x) & SWEEP_EACH(0x80)));
}
#endif

/* The first quote or backslash, or end. */
static inline const char *sweep_quote(const char *at, const char *end)
{
	for (; end - at >= SWEEP_WIDTH; at += SWEEP_WIDTH) {
		unsigned first = sweep_step_quote(at);
		if (first < SWEEP_WIDTH)
			return at + first;
	}
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* The first byte that is not plain text of a string, or end: a quote, a backslash, a control or a byte above 0x7F. */
static inline const char *sweep_special(const char *at, const char *end)
{
	for (; end - at >= SWEEP_WIDTH; at += SWEEP_WIDTH) {
		unsigned first = sweep_step_special(at);
		if (first < SWEEP_WIDTH)
			return at + first;
	}
	while (at < end && (signed char)*at >= ' ' && *at != '"' && *at != '\\')
		at++;
	return at;
}

#endif
