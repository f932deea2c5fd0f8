#include "json/cursor.h"

#include "json/lex.h"
#include "json/sweep.h"

#define MOST_DIGITS 15 /* as many as any double holds */

struct json_slice cursor_string(struct cursor *cursor, bool *escaped)
{
	const char *start = cursor->at, *at = sweep_quote(start + 1, cursor->end);
	*escaped = at < cursor->end && *at == '\\';
	if (*escaped)
		at = lex_skip(start, cursor->end);
	else
		at += at < cursor->end;
	cursor->at = at;
	return (struct json_slice){start, (size_t)(at - start)};
}

struct json_slice cursor_value(struct cursor *cursor)
{
	const char *start = cursor->at;
	cursor->at = lex_skip(start, cursor->end);
	cursor->at += cursor->at == start && start < cursor->end;
	return (struct json_slice){start, (size_t)(cursor->at - start)};
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool cursor_digits(struct cursor *cursor, double *number)
{
	const char *at = cursor->at, *end = cursor->end;
	uint64_t sum = 0;
	for (; at < end && is_digit(*at); at++) {
		if (at - cursor->at == MOST_DIGITS)
			return false;
		sum = sum * 10 + (uint64_t)(*at - '0');
	}
	if (at == cursor->at || (at < end && (*at == '.' || *at == 'e' || *at == 'E')))
		return false;
	cursor->at = at;
	*number = (double)sum;
	return true;
}
