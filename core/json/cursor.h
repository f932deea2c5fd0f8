/* cursor: one way forward through accepted bytes, each of them read once; for who wants every value. Who wants a few
 * members iterates (scan.h).
 *
 * Given bytes that nobody has accepted it may answer anything, but never reads outside [at, end) and always moves on.
 */
#ifndef PERILUNE_JSON_CURSOR_H
#define PERILUNE_JSON_CURSOR_H

#include "json/scan.h"

struct cursor {
	const char *at, *end;
};

/* The first byte of what comes next, which the cursor then stands at; '\0' at the end. Between what JSON is made of
 * nothing but space is so low. */
static inline char cursor_peek(struct cursor *cursor)
{
	while (cursor->at < cursor->end && (unsigned char)*cursor->at <= ' ')
		cursor->at++;
	return cursor->at < cursor->end ? *cursor->at : '\0';
}

/* Whether c comes next; it is taken then. */
static inline bool cursor_take(struct cursor *cursor, char c)
{
	bool next = cursor_peek(cursor) == c;
	cursor->at += next;
	return next;
}

/* The string that the cursor stands at, with its quotes; and whether there are escapes in it. */
struct json_slice cursor_string(struct cursor *cursor, bool *escaped);
/* The value that the cursor stands at, whatever it is. */
struct json_slice cursor_value(struct cursor *cursor);
/* The number that the cursor stands at when it is plain digits, few enough for a double to be exact. False where it is
 * not: then nothing is taken. */
bool cursor_digits(struct cursor *cursor, double *number);

#endif
