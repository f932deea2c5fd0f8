/* match: Lua 5.1's patterns, matched within the time limit.
 *
 * No hook can enter a C function, and a pattern can take exponentially many steps; so this one counts its steps and
 * looks at the time limit now and then. What matches what, and what is an error, is as LuaJIT's own string functions
 * have it: a pattern ends at its first NUL (%z stands for one), and letters are ASCII's. It recurses at most 200 deep,
 * as often as items of the pattern that can be tried in several ways follow one another. */
#ifndef PERILUNE_SCRIPT_MATCH_H
#define PERILUNE_SCRIPT_MATCH_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#define MATCH_MOST_CAPTURES 32

struct match_capture {
	const char *start;
	ptrdiff_t length; /* or one of the two below */
};
#define MATCH_OPEN (-1)     /* its end has not been reached */
#define MATCH_POSITION (-2) /* "()": it stands for where it is */

/* One pattern at work on one subject. Holds nothing that must be freed, so it may be left by an error. */
struct match {
	lua_State *L;               /* for errors; its stack is not touched */
	const char *subject, *end;  /* borrowed */
	const char *start, *finish; /* what the last successful match_at or match_find took */
	int count;                  /* captures; when it has failed nothing can be said of them */
	int depth;
	int steps; /* until the time limit is looked at */
	struct match_capture captures[MATCH_MOST_CAPTURES];
};

void match_init(struct match *match, lua_State *L, const char *subject, size_t length);

/* Whether pattern, which ends with a NUL, matches from the byte at start on, which may be the subject's end. Raises
 * where the pattern is malformed as far as it was read, and where the time is over. */
bool match_at(struct match *match, const char *start, const char *pattern);

/* The first match at start or after it. A "^" in front is an ordinary byte, here and above. Raises as match_at. */
bool match_find(struct match *match, const char *start, const char *pattern);

/* After a match: capture number i from 0 on, or all that matched where the pattern captures nothing. Raises where
 * there is no such one, or where its end is missing in the pattern. */
struct match_capture match_capture(const struct match *match, int i);

/* Counts work that a caller does for the match, a step for each few nanoseconds. Raises where the time is over. */
void match_spend(struct match *match, size_t steps);

#endif
