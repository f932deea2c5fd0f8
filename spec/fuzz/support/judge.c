#include "fuzz.h"

struct cursor {
	const unsigned char *at, *end;
};

static int peek(const struct cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at : -1;
}

static bool take(struct cursor *cursor, const char *any_of)
{
	int next = peek(cursor);
	for (; *any_of; any_of++)
		if (*any_of == next) {
			cursor->at++;
			return true;
		}
	return false;
}

static void skip_space(struct cursor *cursor)
{
	while (take(cursor, " \t\r\n"))
		;
}

static bool take_word(struct cursor *cursor, const char *word)
{
	for (; *word; word++)
		if (!take(cursor, (char[]){*word, '\0'}))
			return false;
	return true;
}

static bool take_digits(struct cursor *cursor)
{
	if (!take(cursor, "0123456789"))
		return false;
	while (take(cursor, "0123456789"))
		;
	return true;
}

static bool take_number(struct cursor *cursor)
{
	take(cursor, "-");
	if (!take(cursor, "0") && !take_digits(cursor))
		return false;
	if (take(cursor, ".") && !take_digits(cursor))
		return false;
	if (!take(cursor, "eE"))
		return true;
	take(cursor, "+-");
	return take_digits(cursor);
}

/* The bytes behind the first of a sequence, and the code point that they make. */
static bool take_multibyte(struct cursor *cursor)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	int first = *cursor->at++;
	int more = (first & 0xE0) == 0xC0 ? 1 : (first & 0xF0) == 0xE0 ? 2 : (first & 0xF8) == 0xF0 ? 3 : 0;
	uint32_t point = (uint32_t)first & (0x3Fu >> more);
	if (!more)
		return false;
	for (int i = 0; i < more; i++, cursor->at++) {
		if (peek(cursor) < 0 || (*cursor->at & 0xC0) != 0x80)
			return false;
		point = point << 6 | (*cursor->at & 0x3Fu);
	}
	return point >= least[more] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
}

/* Four hex digits; -1 when there are fewer. */
static long take_unit(struct cursor *cursor)
{
	long unit = 0;
	for (int i = 0; i < 4; i++) {
		int digit = peek(cursor);
		if (!take(cursor, "0123456789abcdefABCDEF"))
			return -1;
		unit = unit * 16 + (digit <= '9' ? digit - '0' : (digit & 0x5F) - 'A' + 10);
	}
	return unit;
}

static bool take_escape(struct cursor *cursor)
{
	if (take(cursor, "\"\\/bfnrt"))
		return true;
	if (!take(cursor, "u"))
		return false;
	long unit = take_unit(cursor);
	if (unit < 0xD800 || unit > 0xDFFF)
		return unit >= 0;
	if (unit > 0xDBFF || !take(cursor, "\\") || !take(cursor, "u"))
		return false;
	unit = take_unit(cursor);
	return unit >= 0xDC00 && unit <= 0xDFFF;
}

static bool take_string(struct cursor *cursor)
{
	if (!take(cursor, "\""))
		return false;
	while (!take(cursor, "\"")) {
		int next = peek(cursor);
		if (next < 0x20)
			return false;
		if (next >= 0x80) {
			if (!take_multibyte(cursor))
				return false;
			continue;
		}
		cursor->at++;
		if (next == '\\' && !take_escape(cursor))
			return false;
	}
	return true;
}

static bool take_value(struct cursor *cursor, int depth);

static bool take_member(struct cursor *cursor, bool object, int depth)
{
	skip_space(cursor);
	if (object) {
		if (!take_string(cursor))
			return false;
		skip_space(cursor);
		if (!take(cursor, ":"))
			return false;
	}
	if (!take_value(cursor, depth))
		return false;
	skip_space(cursor);
	return true;
}

static bool take_container(struct cursor *cursor, int depth)
{
	bool object = *cursor->at++ == '{';
	const char *close = object ? "}" : "]";
	if (depth > JSON_DEPTH)
		return false;
	skip_space(cursor);
	if (take(cursor, close))
		return true;
	do
		if (!take_member(cursor, object, depth))
			return false;
	while (take(cursor, ","));
	return take(cursor, close);
}

static bool take_value(struct cursor *cursor, int depth)
{
	skip_space(cursor);
	switch (peek(cursor)) {
	case '{':
	case '[':
		return take_container(cursor, depth + 1);
	case '"':
		return take_string(cursor);
	case 't':
		return take_word(cursor, "true");
	case 'f':
		return take_word(cursor, "false");
	case 'n':
		return take_word(cursor, "null");
	default:
		return take_number(cursor);
	}
}

bool fuzz_is_json(const char *bytes, size_t length)
{
	struct cursor cursor = {(const unsigned char *)bytes, (const unsigned char *)bytes + length};
	if (!take_value(&cursor, 0))
		return false;
	skip_space(&cursor);
	return cursor.at == cursor.end;
}
