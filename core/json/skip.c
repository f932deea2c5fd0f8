/* lex_skip, of lex.h. A container is passed over a block at a time: which of them lie in strings follows from the
 * quotes, and what is left are brackets to count. */
#include "json/lex.h"
#include "json/sweep.h"

/* How far a container has been passed over. */
struct skip {
	const char *at;
	size_t depth;
	bool string; /* inside one */
};

/* Behind the end of the string that `at` is inside of. */
static const char *skip_rest(const char *at, const char *end)
{
	for (; (at = sweep_quote(at, end)) < end; at += 2) {
		if (*at == '"')
			return at + 1;
		if (end - at < 2)
			break;
	}
	return end;
}

/* Byte by byte up to until at least. True when the container has ended. */
static bool walk(struct skip *skip, const char *until, const char *end)
{
	while (skip->at < until) {
		if (skip->string)
			skip->at = skip_rest(skip->at, end);
		skip->string = false;
		char c = skip->at < end ? *skip->at++ : ' ';
		if (c == '"')
			skip->string = true;
		else if (c == '{' || c == '[')
			skip->depth++;
		else if ((c == '}' || c == ']') && !--skip->depth)
			return true;
	}
	return false;
}

/* Where its bytes are what, a bit for each. */
struct block {
	uint64_t quotes, backslashes, opening, closing;
};

static struct block read_block(const char *at)
{
	struct block block = {0};
#pragma GCC unroll 8
	for (int i = 0; i < SWEEP_BLOCK; i += SWEEP_WIDTH) {
		sweep_lane x = sweep_load(at + i), folded = sweep_with(x, ' '); /* brackets become braces */
		block.quotes |= sweep_bits(sweep_equal(x, '"')) << i;
		block.backslashes |= sweep_bits(sweep_equal(x, '\\')) << i;
		block.opening |= sweep_bits(sweep_equal(folded, '{')) << i;
		block.closing |= sweep_bits(sweep_equal(folded, '}')) << i;
	}
	return block;
}

/* For each bit whether it and those below are odd in number. */
static uint64_t parities(uint64_t bits)
{
#pragma GCC unroll 6
	for (int i = 1; i < 64; i *= 2)
		bits ^= bits << i;
	return bits;
}

static size_t count(uint64_t bits)
{
	return (size_t)__builtin_popcountll(bits);
}

/* True when the container has ended: at the first closing bracket that leaves none open. */
static bool pass_brackets(struct skip *skip, uint64_t opening, uint64_t closing)
{
	size_t closed = 0, closing_count = count(closing);
	for (uint64_t left = closing; left && closing_count >= skip->depth; left &= left - 1) {
		int place = __builtin_ctzll(left);
		if (skip->depth + count(opening & (((uint64_t)1 << place) - 1)) != ++closed)
			continue;
		skip->at += place + 1;
		return true;
	}
	skip->depth += count(opening) - closing_count;
	return false;
}

static bool pass(struct skip *skip, const struct block *block)
{
	uint64_t inside = parities(block->quotes) ^ (skip->string ? UINT64_MAX : 0);
	if (pass_brackets(skip, block->opening & ~inside, block->closing & ~inside))
		return true;
	skip->string = inside >> 63;
	skip->at += SWEEP_BLOCK;
	return false;
}

#define SMALL 32 /* many a container is, for which a block would be too much */

static const char *skip_container(const char *at, const char *end)
{
	struct skip skip = {at + 1, 1, false};
	bool ended = walk(&skip, end - at < SMALL ? end : at + SMALL, end);
	while (!ended && end - skip.at >= SWEEP_BLOCK) {
		struct block block = read_block(skip.at);
		ended = block.backslashes ? walk(&skip, skip.at + SWEEP_BLOCK, end) : pass(&skip, &block);
	}
	return ended || walk(&skip, end, end) ? skip.at : end;
}

static bool is_delimiter(char c)
{
	return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

const char *lex_skip(const char *at, const char *end)
{
	if (at == end)
		return end;
	if (*at == '"')
		return skip_rest(at + 1, end);
	if (*at == '{' || *at == '[')
		return skip_container(at, end);
	while (at < end && !is_delimiter(*at))
		at++;
	return at;
}
