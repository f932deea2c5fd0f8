#include "script/match.h"

#include <lauxlib.h>
#include <string.h>

#include "script/limit.h"

#define MOST_DEPTH 200 /* LuaJIT's */
#define STEPS 1000     /* some microseconds */

/* Bytes that memcmp compares while a step goes by. */
#define COMPARED 16

typedef unsigned char byte;

/* What comes next; s NULL when it does not match. */
struct place {
	const char *s, *p;
};

static const char *match_rest(struct match *match, const char *s, const char *p);

static void __attribute__((noinline)) look_at_limit(struct match *match)
{
	match->steps = STEPS;
	limit_check(match->L);
}

static inline void step(struct match *match)
{
	if (--match->steps < 0)
		look_at_limit(match);
}

void match_spend(struct match *match, size_t steps)
{
	if (steps > (size_t)match->steps)
		look_at_limit(match);
	else
		match->steps -= (int)steps;
}

/* Of ASCII, whatever the locale. The subtractions wrap around. */
static inline bool is_digit(unsigned c)
{
	return c - '0' < 10;
}

static inline bool is_letter(unsigned c)
{
	return (c | 0x20) - 'a' < 26;
}

static inline bool is_graph(unsigned c)
{
	return c - '!' <= '~' - '!';
}

/* Whether c is of the class with that lower-case letter; -1 when there is no such class. */
static inline int is_of_kind(unsigned c, int letter)
{
	switch (letter) {
	case 'a':
		return is_letter(c);
	case 'c':
		return c < ' ' || c == 127;
	case 'd':
		return is_digit(c);
	case 'g':
		return is_graph(c);
	case 'l':
		return c - 'a' < 26;
	case 'p':
		return is_graph(c) && !is_digit(c) && !is_letter(c);
	case 's':
		return c == ' ' || c - '\t' < 5;
	case 'u':
		return c - 'A' < 26;
	case 'w':
		return is_digit(c) || is_letter(c);
	case 'x':
		return is_digit(c) || (c | 0x20) - 'a' < 6;
	case 'z':
		return c == 0;
	default:
		return -1;
	}
}

/* letter: what stands behind the "%". A capital is all that is not of the class. */
static inline bool is_of_class(byte c, byte letter)
{
	int is = is_of_kind(c, letter | 0x20);
	return is < 0 ? c == letter : is == ((letter & 0x20) != 0);
}

/* set: at its "[". last: its "]". */
static bool is_in_set(struct match *match, byte c, const char *set, const char *last)
{
	const char *p = set + 1;
	bool inverted = *p == '^';
	for (p += inverted; p < last; p++) {
		step(match);
		bool in;
		if (*p == '%') {
			p++;
			in = is_of_class(c, (byte)*p);
		} else if (p[1] == '-' && p + 2 < last) {
			in = (byte)p[0] <= c && c <= (byte)p[2];
			p += 2;
		} else {
			in = (byte)*p == c;
		}
		if (in)
			return !inverted;
	}
	return inverted;
}

/* Behind the set at p. Its first byte is of it, even a "]". */
static const char *set_end(struct match *match, const char *p)
{
	p += p[1] == '^' ? 2 : 1;
	do {
		step(match);
		if (*p == '\0')
			luaL_error(match->L, "malformed pattern (missing ']')");
		if (*p++ == '%' && *p != '\0')
			p++;
	} while (*p != ']');
	return p + 1;
}

/* Behind the item at p that stands for one byte: where its quantifier would be. */
static const char *item_end(struct match *match, const char *p)
{
	if (*p == '[')
		return set_end(match, p);
	if (*p != '%')
		return p + 1;
	if (p[1] == '\0')
		luaL_error(match->L, "malformed pattern (ends with '%%')");
	return p + 2;
}

static inline bool is_item(struct match *match, byte c, const char *p, const char *end)
{
	switch (*p) {
	case '.':
		return true;
	case '%':
		return is_of_class(c, (byte)p[1]);
	case '[':
		return is_in_set(match, c, p, end - 1);
	default:
		return (byte)*p == c;
	}
}

/* Where the first item of a pattern ends, when it stands for exactly one byte, else NULL. */
static const char *first_end(struct match *match, const char *p)
{
	if (*p == '\0' || *p == '(' || *p == ')' || *p == '$' ||
	    (*p == '%' && (p[1] == 'b' || p[1] == 'f' || is_digit((byte)p[1]))))
		return NULL;
	const char *end = item_end(match, p);
	return *end == '*' || *end == '?' || *end == '-' ? NULL : end;
}

/* Whether the pattern at p may match at s: no, when its first item, which ends at end, is not that byte. end: of
 * first_end(). match_rest() would say the same, but takes longer. */
static inline bool may_begin(struct match *match, const char *s, const char *p, const char *end)
{
	step(match);
	return !end || s == match->end || is_item(match, (byte)*s, p, end);
}

/* The item as often as it goes, then less often until the rest matches. The first try says what is wrong with the rest
 * of the pattern. */
static const char *match_most(struct match *match, const char *s, const char *p, const char *end, ptrdiff_t least)
{
	ptrdiff_t count = 0, left = match->end - s;
	for (; count < left && is_item(match, (byte)s[count], p, end); count++)
		step(match);
	if (count < least)
		return NULL;
	const char *rest = end + 1, *found = match_rest(match, s + count, rest);
	if (found || count == least)
		return found;
	const char *first = first_end(match, rest);
	while (!found && --count >= least)
		if (may_begin(match, s + count, rest, first))
			found = match_rest(match, s + count, rest);
	return found;
}

/* The item as seldom as the rest allows. */
static const char *match_fewest(struct match *match, const char *s, const char *p, const char *end)
{
	const char *rest = end + 1, *found = match_rest(match, s, rest);
	if (found)
		return found;
	const char *first = first_end(match, rest);
	while (!found && s < match->end && is_item(match, (byte)*s, p, end))
		if (may_begin(match, ++s, rest, first))
			found = match_rest(match, s, rest);
	return found;
}

static const char *open_capture(struct match *match, const char *s, const char *p, ptrdiff_t length)
{
	if (match->count == MATCH_MOST_CAPTURES)
		luaL_error(match->L, "too many captures");
	match->captures[match->count++] = (struct match_capture){s, length};
	const char *found = match_rest(match, s, p);
	if (!found)
		match->count--;
	return found;
}

static const char *close_capture(struct match *match, const char *s, const char *p)
{
	int last = match->count - 1;
	while (last >= 0 && match->captures[last].length != MATCH_OPEN)
		last--;
	if (last < 0)
		luaL_error(match->L, "invalid pattern capture");
	struct match_capture *capture = &match->captures[last];
	capture->length = s - capture->start;
	const char *found = match_rest(match, s, p);
	if (!found)
		capture->length = MATCH_OPEN;
	return found;
}

/* "%bxy" at p: behind the y that closes the x at s. */
static const char *match_balanced(struct match *match, const char *s, const char *p)
{
	if (p[2] == '\0' || p[3] == '\0')
		luaL_error(match->L, "unbalanced pattern");
	if (s == match->end || *s != p[2])
		return NULL;
	ptrdiff_t depth = 1;
	while (++s < match->end) {
		step(match);
		if (*s == p[3] && --depth == 0)
			return s + 1;
		if (*s == p[2] && *s != p[3])
			depth++;
	}
	return NULL;
}

/* Whether the set at p, with this end, begins to hold at s. Around the subject there are NULs. */
static bool is_frontier(struct match *match, const char *s, const char *p, const char *end)
{
	byte before = s == match->subject ? '\0' : (byte)s[-1], here = s == match->end ? '\0' : (byte)*s;
	return !is_in_set(match, before, p, end - 1) && is_in_set(match, here, p, end - 1);
}

/* "%1" at p: behind the same text as that capture's. One of a place has none. */
static const char *match_again(struct match *match, const char *s, const char *p)
{
	int i = p[1] - '1';
	if (i < 0 || i >= match->count || match->captures[i].length == MATCH_OPEN)
		luaL_error(match->L, "invalid capture index");
	struct match_capture capture = match->captures[i];
	if (capture.length == MATCH_POSITION || match->end - s < capture.length)
		return NULL;
	match_spend(match, (size_t)capture.length / COMPARED);
	return memcmp(s, capture.start, (size_t)capture.length) == 0 ? s + capture.length : NULL;
}

/* Goes past "%b", "%f" or "%1"; false when none of them is at the place. */
static bool pass_special(struct match *match, struct place *at)
{
	const char *end;
	switch (at->p[1]) {
	case 'b':
		at->s = match_balanced(match, at->s, at->p);
		at->p += 4;
		return true;
	case 'f':
		at->p += 2;
		if (*at->p != '[')
			luaL_error(match->L, "missing '[' after '%%f' in pattern");
		end = set_end(match, at->p);
		at->s = is_frontier(match, at->s, at->p, end) ? at->s : NULL;
		at->p = end;
		return true;
	default:
		if (!is_digit((byte)at->p[1]))
			return false;
		at->s = match_again(match, at->s, at->p);
		at->p += 2;
		return true;
	}
}

/* Goes past the item at the place that stands for one byte. False when s is the answer already: the end of the match,
 * or NULL. */
static inline bool pass_item(struct match *match, struct place *at)
{
	const char *s = at->s, *p = at->p, *end = item_end(match, p);
	switch (*end) {
	case '*':
	case '+':
		at->s = match_most(match, s, p, end, *end == '+');
		return false;
	case '-':
		at->s = match_fewest(match, s, p, end);
		return false;
	}
	bool is = s < match->end && is_item(match, (byte)*s, p, end);
	at->p = *end == '?' ? end + 1 : end;
	if (*end != '?') {
		at->s = is ? s + 1 : NULL;
		return is;
	}
	const char *found = is ? match_rest(match, s + 1, end + 1) : NULL;
	at->s = found ? found : s;
	return !found;
}

/* Goes past one item of the pattern, as pass_item() does. */
static inline bool pass(struct match *match, struct place *at)
{
	const char *p = at->p;
	switch (*p) {
	case '\0':
		return false;
	case '(':
		at->s = p[1] == ')' ? open_capture(match, at->s, p + 2, MATCH_POSITION)
				    : open_capture(match, at->s, p + 1, MATCH_OPEN);
		return false;
	case ')':
		at->s = close_capture(match, at->s, p + 1);
		return false;
	case '$':
		if (p[1] != '\0')
			break;
		at->s = at->s == match->end ? at->s : NULL;
		return false;
	case '%':
		if (pass_special(match, at))
			return at->s != NULL;
		break;
	}
	return pass_item(match, at);
}

/* Where the match of all of p at s ends, or NULL. */
static const char *match_rest(struct match *match, const char *s, const char *p)
{
	struct place at = {s, p};
	if (++match->depth > MOST_DEPTH)
		luaL_error(match->L, "pattern too complex");
	do
		step(match);
	while (pass(match, &at));
	match->depth--;
	return at.s;
}

void match_init(struct match *match, lua_State *L, const char *subject, size_t length)
{
	match->L = L;
	match->subject = subject;
	match->end = subject + length;
	match->steps = 0; /* the first looks: a C function may call again and again, where no hook goes off either */
}

bool match_at(struct match *match, const char *start, const char *pattern)
{
	match->count = match->depth = 0;
	match->start = start;
	match->finish = match_rest(match, start, pattern);
	return match->finish != NULL;
}

bool match_find(struct match *match, const char *start, const char *pattern)
{
	const char *first = first_end(match, pattern);
	for (const char *s = start; s <= match->end; s++)
		if (may_begin(match, s, pattern, first) && match_at(match, s, pattern))
			return true;
	return false;
}

struct match_capture match_capture(const struct match *match, int i)
{
	if (i == 0 && match->count == 0)
		return (struct match_capture){match->start, match->finish - match->start};
	if (i >= match->count)
		luaL_error(match->L, "invalid capture index");
	if (match->captures[i].length == MATCH_OPEN)
		luaL_error(match->L, "unfinished capture");
	return match->captures[i];
}
