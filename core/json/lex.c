#include "json/lex.h"

#include "base/utf8.h"

/* The kind of each open container, one bit a level: 1 is an object. */
struct nest {
	uint64_t objects[JSON_DEPTH / 64]; /* each word is zeroed when the first of its levels opens */
	unsigned depth;
	bool object; /* the innermost one */
};

int lex_fail(struct err *err, size_t offset, const char *expected)
{
	return err_set(err, "", "byte %zu: expected %s", offset, expected);
}

static const char *fail(struct lex_fault *fault, const char *at, const char *end, const char *expected)
{
	*fault = (struct lex_fault){at, expected, at == end};
	return NULL;
}

static bool nest_push(struct nest *nest, bool object)
{
	if (nest->depth == JSON_DEPTH)
		return false;
	uint64_t bit = (uint64_t)1 << (nest->depth & 63);
	if (bit == 1)
		nest->objects[nest->depth >> 6] = 0;
	if (object)
		nest->objects[nest->depth >> 6] |= bit;
	else
		nest->objects[nest->depth >> 6] &= ~bit;
	nest->depth++;
	nest->object = object;
	return true;
}

static void nest_pop(struct nest *nest)
{
	nest->depth--;
	if (nest->depth)
		nest->object = nest->objects[(nest->depth - 1) >> 6] >> ((nest->depth - 1) & 63) & 1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of a \u escape at `at`; -1 with *at at the first that is none. */
static int32_t hex_four(const char **at, const char *end)
{
	int32_t unit = 0;
	for (int i = 0; i < 4; i++, (*at)++) {
		int digit = *at < end ? hex_digit(**at) : -1;
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* `at` is behind "\u". A high surrogate must be followed by the escape of a low one. */
static const char *check_unicode(const char *at, const char *end, struct lex_fault *fault)
{
	const char *start = at - 2;
	int32_t unit = hex_four(&at, end);
	if (unit < 0)
		return fail(fault, at, end, "a hex digit");
	if (unit < 0xD800 || unit > 0xDFFF)
		return at;
	if (unit > 0xDBFF)
		return fail(fault, start, end, "no lone low surrogate");
	for (const char *sign = "\\u"; *sign; sign++, at++)
		if (at == end || *at != *sign)
			return fail(fault, at, end, "the \\u escape of a low surrogate");
	start = at;
	unit = hex_four(&at, end);
	if (unit < 0)
		return fail(fault, at, end, "a hex digit");
	if (unit < 0xDC00 || unit > 0xDFFF)
		return fail(fault, start, end, "a low surrogate");
	return at;
}

/* `at` is behind the backslash. */
static const char *check_escape(const char *at, const char *end, struct lex_fault *fault)
{
	if (at == end)
		return fail(fault, at, end, "an escape");
	switch (*at) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return at + 1;
	case 'u':
		return check_unicode(at + 1, end, fault);
	default:
		return fail(fault, at, end, "an escape (one of \"\\/bfnrtu)");
	}
}

static const char *check_utf8(const char *at, const char *end, struct lex_fault *fault)
{
	do {
		size_t sequence = utf8_sequence((const unsigned char *)at, (size_t)(end - at));
		if (!sequence) {
			fail(fault, at, end, "valid UTF-8");
			fault->cut = end - at < 4; /* perhaps only cut off */
			return NULL;
		}
		at += sequence;
	} while (at < end && (unsigned char)*at >= 0x80);
	return at;
}

/* The first byte that is not plain ASCII text: a quote, a backslash, a control or a byte above 0x7F. */
static const char *find_special(const char *at, const char *end)
{
	for (; end - at >= 8; at += 8) {
		uint64_t x = lex_load(at);
		uint64_t hits = ((x - LEX_EACH(0x20)) | x) & LEX_EACH(0x80);
		hits |= lex_zeros(x ^ LEX_EACH('"')) | lex_zeros(x ^ LEX_EACH('\\'));
		if (hits)
			return at + (__builtin_ctzll(hits) >> 3);
	}
	while (at < end && (signed char)*at >= 0x20 && *at != '"' && *at != '\\')
		at++;
	return at;
}

/* `at` is behind the opening quote. */
static const char *check_string(const char *at, const char *end, struct lex_fault *fault)
{
	for (;;) {
		at = find_special(at, end);
		if (at == end)
			return fail(fault, at, end, "the rest of a string");
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at = check_escape(at + 1, end, fault);
		else if ((unsigned char)*at >= 0x80)
			at = check_utf8(at, end, fault);
		else
			return fail(fault, at, end, "no bare control character in a string");
		if (!at)
			return NULL;
	}
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* One digit or more. */
static const char *check_digits(const char *at, const char *end, struct lex_fault *fault)
{
	const char *behind = skip_digits(at, end);
	return behind == at ? fail(fault, at, end, "a digit") : behind;
}

static const char *check_number(const char *at, const char *end, struct lex_fault *fault)
{
	if (*at == '-')
		at++;
	at = at < end && *at == '0' ? at + 1 : check_digits(at, end, fault);
	if (at && at < end && *at == '.')
		at = check_digits(at + 1, end, fault);
	if (at && at < end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		at = check_digits(at, end, fault);
	}
	return at;
}

static const char *check_word(const char *at, const char *end, const char *word, struct lex_fault *fault)
{
	for (const char *letter = word; *letter; letter++, at++)
		if (at == end || *at != *letter)
			return fail(fault, at, end, word);
	return at;
}

static const char *check_scalar(const char *at, const char *end, struct lex_fault *fault)
{
	switch (*at) {
	case '"':
		return check_string(at + 1, end, fault);
	case 't':
		return check_word(at, end, "true", fault);
	case 'f':
		return check_word(at, end, "false", fault);
	case 'n':
		return check_word(at, end, "null", fault);
	default:
		if (*at != '-' && (*at < '0' || *at > '9'))
			return fail(fault, at, end, "a value");
		return check_number(at, end, fault);
	}
}

/* A key and its colon. */
static const char *check_key(const char *at, const char *end, struct lex_fault *fault)
{
	at = lex_space(at, end);
	if (at == end || *at != '"')
		return fail(fault, at, end, "a key in double quotes");
	at = check_string(at + 1, end, fault);
	if (!at)
		return NULL;
	at = lex_space(at, end);
	return at == end || *at != ':' ? fail(fault, at, end, "':'") : at + 1;
}

/* `at` is behind an opening bracket. Goes to the first value, or behind the closing bracket of an empty container. */
static const char *enter(struct nest *nest, const char *at, const char *end, bool *empty, struct lex_fault *fault)
{
	at = lex_space(at, end);
	*empty = at < end && *at == (nest->object ? '}' : ']');
	if (*empty) {
		nest_pop(nest);
		return at + 1;
	}
	if (!nest->object)
		return at;
	if (at == end || *at != '"')
		return fail(fault, at, end, "a key in double quotes or '}'");
	return check_key(at, end, fault);
}

/* Behind a value inside a container: goes to the next value, or behind the closing bracket with *closed set. */
static const char *advance(struct nest *nest, const char *at, const char *end, bool *closed, struct lex_fault *fault)
{
	at = lex_space(at, end);
	*closed = at < end && *at == (nest->object ? '}' : ']');
	if (*closed) {
		nest_pop(nest);
		return at + 1;
	}
	if (at == end || *at != ',')
		return fail(fault, at, end, nest->object ? "',' or '}'" : "',' or ']'");
	return nest->object ? check_key(at + 1, end, fault) : at + 1;
}

const char *lex_value(const char *at, const char *end, struct lex_fault *fault)
{
	struct nest nest;
	nest.depth = 0;
	nest.object = false;
	do {
		bool whole = true;
		at = lex_space(at, end);
		if (at == end)
			return fail(fault, at, end, "a value");
		if (*at == '{' || *at == '[') {
			if (!nest_push(&nest, *at == '{'))
				return fail(fault, at, end, "no deeper nesting");
			at = enter(&nest, at + 1, end, &whole, fault);
		} else {
			at = check_scalar(at, end, fault);
		}
		while (at && whole && nest.depth)
			at = advance(&nest, at, end, &whole, fault);
	} while (at && nest.depth);
	return at;
}
