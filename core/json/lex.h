/* lex: the inside of the scanner, for the files of core/json/ alone.
 *
 * lex_run, which lex_value calls, is the one judge of what is JSON. The other functions walk bytes that it has
 * accepted; given others they may answer anything, but never read outside [at, end) and always come to an end. */
#ifndef PERILUNE_JSON_LEX_H
#define PERILUNE_JSON_LEX_H

#include "json/outline.h"

/* Why bytes are no JSON. */
struct lex_fault {
	const char *at;
	const char *expected;
	bool cut; /* the bytes ran out: more of them may make it right */
};

/* Where reading stands. */
enum lex_state {
	LEX_VALUE,         /* before a value */
	LEX_FIRST_ELEMENT, /* behind an opening bracket */
	LEX_FIRST_KEY,     /* behind an opening brace */
	LEX_KEY,           /* before a key that is not the first */
	LEX_IN_KEY,
	LEX_COLON,
	LEX_IN_STRING,
	LEX_IN_NUMBER,
	LEX_BEHIND, /* behind a value */
};

enum lex_kind {
	LEX_ARRAY,
	LEX_OBJECT,
	LEX_NOTED, /* an object whose members are noted */
};

/* The reading of one value whose bytes come bit by bit, none of them read twice. They may lie elsewhere each time, so
 * that all places are offsets from the value's start. */
struct lex {
	enum lex_state state;
	size_t at;    /* how far it has been read; in the end, the length */
	size_t token; /* where the noted key or the number starts that was begun last */
	bool more;    /* a number that touches the end goes on; else it is whole */
	struct lex_fault fault;
	const char *start, *end; /* while it runs */
	struct lex_notes *notes;
	unsigned depth;
	uint8_t kind;              /* enum lex_kind, of the innermost open container */
	uint8_t kinds[JSON_DEPTH]; /* of those around it, from the outermost one, which is none, on */
};

/* What is noted of a value's members. */
struct lex_notes {
	const char *const *way;           /* the keys that lead from a noted object to the next; ends with NULL */
	unsigned pending[OUTLINE_LEVELS]; /* of each open noted object: 1 + the note of the member that is read */
	unsigned level;                   /* how many those are */
	bool leads;                       /* the member's key is the way's */
	bool full;
	unsigned count;
	struct outline_note list[OUTLINE_MOST];
};

/* notes: NULL for none; else with the way set. Kept for as long as lex is used. */
void lex_begin(struct lex *lex, bool more, struct lex_notes *notes);
/* Of the value that has become whole. */
struct outline lex_outline(const struct lex *lex, struct json_slice value);
/* Reads on in the bytes from the value's start, space before it allowed, which are those of the last time and more.
 * True when it is whole. Else false with fault, after which only one that is cut can be read on. */
bool lex_run(struct lex *lex, const char *start, const char *end);

/* Reads one value, space before it allowed; returns the place behind it. NULL with fault when there is none. A number
 * that touches the end is taken as whole. */
const char *lex_value(const char *at, const char *end, struct lex_fault *fault);

/* Puts "byte n: expected …" into err. Returns -1. */
int lex_fail(struct err *err, size_t offset, const char *expected);

/* The place behind the value that starts at `at`. */
const char *lex_skip(const char *at, const char *end);

/* Decodes the escape whose backslash is at *at into out (4 bytes) and moves *at behind it. Returns the length. */
size_t lex_unescape(const char **at, const char *end, char *out);

/* json_string_equals and json_get for text that is not NUL-terminated. */
bool lex_string_same(struct json_slice string, const char *text, size_t length);
struct json_slice lex_member(struct json_slice object, const char *key, size_t length);

/* The same, quicker where it is not equal, as most keys that are looked at are not. */
static inline bool lex_string_is(struct json_slice string, const char *text, size_t length)
{
	if (length && (string.length < 3 || (string.data[1] != *text && string.data[1] != '\\')))
		return false;
	return lex_string_same(string, text, length);
}

static inline const char *lex_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

#endif
