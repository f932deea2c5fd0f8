#include "json/resolve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/number.h"

struct word {
	const char *text, *json;
	enum resolved meaning;
};

#define THREE(lower, title, upper, json, meaning)                                                                      \
	{lower, json, meaning}, {title, json, meaning},                                                                \
	{                                                                                                              \
		upper, json, meaning                                                                                   \
	}

static const struct word words[] = {
    {"~", "null", RESOLVED_NULL},
    THREE("null", "Null", "NULL", "null", RESOLVED_NULL),
    THREE("true", "True", "TRUE", "true", RESOLVED_BOOL),
    THREE("false", "False", "FALSE", "false", RESOLVED_BOOL),
    THREE("yes", "Yes", "YES", "true", RESOLVED_BOOL),
    THREE("no", "No", "NO", "false", RESOLVED_BOOL),
    THREE("on", "On", "ON", "true", RESOLVED_BOOL),
    THREE("off", "Off", "OFF", "false", RESOLVED_BOOL),
    {"y", "true", RESOLVED_BOOL},
    {"Y", "true", RESOLVED_BOOL},
    {"n", "false", RESOLVED_BOOL},
    {"N", "false", RESOLVED_BOOL},
    THREE(".nan", ".NaN", ".NAN", "", RESOLVED_NO_JSON),
    THREE(".inf", ".Inf", ".INF", "", RESOLVED_NO_JSON),
    THREE("+.inf", "+.Inf", "+.INF", "", RESOLVED_NO_JSON),
    THREE("-.inf", "-.Inf", "-.INF", "", RESOLVED_NO_JSON),
};

static const struct word *find_word(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].text) == length && !memcmp(words[i].text, text, length))
			return &words[i];
	return NULL;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Moves *text behind 0x, 0b, 0o or a leading 0. */
static unsigned read_base(const char **text)
{
	if ((*text)[0] != '0' || !(*text)[1])
		return 10;
	char letter = (*text)[1] | 0x20;
	unsigned base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
	*text += letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1;
	return base;
}

/* -2^63 to 2^64-1; a plus sign only up to 2^63-1, as in Go. */
static bool append_integer(const char *text, struct buf *out)
{
	bool negative = *text == '-', sign = negative || *text == '+';
	text += sign;
	unsigned base = read_base(&text);
	uint64_t sum = 0, most = negative ? (uint64_t)INT64_MAX + 1 : sign ? INT64_MAX : UINT64_MAX;
	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)digit_value(*text);
		if (digit >= base || sum > (most - digit) / base)
			return false;
		sum = sum * base + digit;
	}
	buf_append_format(out, "%s%llu", negative && sum ? "-" : "", (unsigned long long)sum);
	return true;
}

static size_t count_digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* [-+]? ( .digits | digits [. digits?] ) ( [eE] [-+]? digits )? */
static bool is_float(const char *text)
{
	text += *text == '-' || *text == '+';
	size_t whole = count_digits(text);
	text += whole;
	if (*text == '.') {
		size_t fraction = count_digits(++text);
		if (!whole && !fraction)
			return false;
		text += fraction;
	} else if (!whole) {
		return false;
	}
	if (*text == 'e' || *text == 'E') {
		text++;
		text += *text == '-' || *text == '+';
		size_t exponent = count_digits(text);
		if (!exponent)
			return false;
		text += exponent;
	}
	return !*text;
}

/* One that is too large for a double stays a string, as in Go. */
static bool append_float(const char *text, struct buf *out)
{
	char written[NUMBER_SIZE];
	double value = is_float(text) ? strtod(text, NULL) : INFINITY;
	return isfinite(value) && !buf_append(out, written, number_format(value, written));
}

static enum resolved resolve_number(const char *text, size_t length, struct buf *out)
{
	struct buf plain;
	enum resolved meaning = RESOLVED_STRING;
	buf_init(&plain, 0);
	for (size_t i = 0; i < length; i++)
		if (text[i] != '_' || text[0] == '.') /* a number that starts with its point has no underscores */
			buf_append_char(&plain, text[i]);
	if (strlen(buf_text(&plain)) == plain.length) {
		if (text[0] != '.' && append_integer(plain.data, out))
			meaning = RESOLVED_INT;
		else if (append_float(plain.data, out))
			meaning = RESOLVED_FLOAT;
	}
	buf_fini(&plain);
	return meaning;
}

static enum resolved resolve_into(const char *text, size_t length, struct buf *out)
{
	if (!length) {
		buf_append_text(out, "null");
		return RESOLVED_NULL;
	}
	if (length <= 5 && strchr("~nNtTfFyYoO.+-", text[0])) {
		const struct word *word = find_word(text, length);
		if (word) {
			buf_append_text(out, word->json);
			return word->meaning;
		}
	}
	enum resolved meaning = RESOLVED_STRING;
	if (strchr("0123456789+-.", text[0]) && text[0])
		meaning = resolve_number(text, length, out);
	if (meaning == RESOLVED_STRING)
		buf_append_json_string(out, text, length);
	return meaning;
}

enum resolved resolve_plain(const char *text, size_t length, struct buf *out)
{
	if (out)
		return resolve_into(text, length, out);
	struct buf unused;
	buf_init(&unused, 0);
	enum resolved meaning = resolve_into(text, length, &unused);
	buf_fini(&unused);
	return meaning;
}
