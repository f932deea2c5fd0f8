#include "json/lex.h"

#include <string.h>

#include "base/utf8.h"
#include "json/sweep.h"

int lex_fail(struct err *err, size_t offset, const char *expected)
{
	return err_set(err, "", "byte %zu: expected %s", offset, expected);
}

static const char *fail(struct lex_fault *fault, const char *at, const char *end, const char *expected)
{
	*fault = (struct lex_fault){at, expected, at == end};
	return NULL;
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

/* Moves *start to the last sequence that it has read, so that none is read twice. */
static const char *check_utf8(const char **start, const char *end, struct lex_fault *fault)
{
	const char *at = *start;
	do {
		size_t sequence = utf8_sequence((const unsigned char *)at, (size_t)(end - at));
		*start = at;
		if (!sequence) {
			fail(fault, at, end, "valid UTF-8");
			fault->cut = end - at < 4; /* perhaps only cut off */
			return NULL;
		}
		at += sequence;
	} while (at < end && (unsigned char)*at >= 0x80);
	return at;
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

static bool is_of_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* What stands around the value is taken for a noted object whose one member leads on. */
void lex_begin(struct lex *lex, bool more, struct lex_notes *notes)
{
	lex->state = LEX_VALUE;
	lex->at = lex->token = 0;
	lex->more = more;
	lex->depth = 0;
	lex->kind = notes ? LEX_NOTED : LEX_OBJECT;
	lex->notes = notes;
	if (notes) {
		notes->level = notes->count = 0;
		notes->leads = true;
		notes->full = false;
	}
}

/* The note of the member that is read in the innermost noted object. */
static struct outline_note *pending(struct lex_notes *notes)
{
	unsigned note = notes->level ? notes->pending[notes->level - 1] : 0;
	return note ? &notes->list[note - 1] : NULL;
}

/* An object begins as the value of a noted member: whether its own are noted. */
static bool note_object(struct lex_notes *notes)
{
	struct outline_note *note = pending(notes);
	if (!notes->leads)
		return false;
	if (note)
		note->open = true;
	notes->pending[notes->level++] = 0;
	notes->leads = false;
	return true;
}

/* `at` is behind the key. */
static void note_key(struct lex *lex, const char *at)
{
	struct lex_notes *notes = lex->notes;
	notes->full |= notes->count == OUTLINE_MOST;
	if (notes->full)
		return;
	struct outline_note *note = &notes->list[notes->count++];
	*note = (struct outline_note){.key = lex->token, .behind_key = (size_t)(at - lex->start)};
	notes->pending[notes->level - 1] = notes->count;
	const char *step = notes->way[notes->level - 1];
	size_t length = note->behind_key - note->key - 2;
	notes->leads = step && length == strlen(step) && !memcmp(lex->start + note->key + 1, step, length);
}

/* `at` is at the comma or bracket behind a member, or at the bracket of an object without members. */
static void note_end(struct lex *lex, const char *at)
{
	struct outline_note *note = pending(lex->notes);
	if (!note)
		return;
	note->behind_value = (size_t)(at - lex->start);
	note->next = lex->notes->count;
}

struct outline lex_outline(const struct lex *lex, struct json_slice value)
{
	struct outline outline = outline_of(value);
	if (!lex->notes || lex->notes->full || json_type(value) != JSON_OBJECT)
		return outline;
	outline.base = value.data;
	outline.notes = lex->notes->list;
	outline.last = lex->notes->count;
	return outline;
}

/* False when there are too many levels. */
static inline bool push(struct lex *lex, enum lex_kind kind)
{
	if (lex->depth == JSON_DEPTH)
		return false;
	lex->kinds[lex->depth++] = lex->kind;
	lex->kind = (uint8_t)kind;
	return true;
}

/* `at` is at the bracket. */
static inline void pop(struct lex *lex, const char *at)
{
	if (lex->kind == LEX_NOTED) {
		note_end(lex, at);
		lex->notes->level--;
	}
	lex->kind = lex->kinds[--lex->depth];
}

/* Reading goes on at `at`, in that state. */
static bool stay(struct lex *lex, enum lex_state state, const char *at)
{
	lex->state = state;
	lex->at = (size_t)(at - lex->start);
	return false;
}

static bool stop(struct lex *lex, enum lex_state state, const char *at, const char *expected)
{
	fail(&lex->fault, at, lex->end, expected);
	return stay(lex, state, at);
}

/* `at` is in a string, at a byte that is no plain text, and no quote. Returns the place behind it and its kin, or NULL.
 */
static const char *read_special(struct lex *lex, enum lex_state state, const char *at)
{
	const char *behind = NULL, *end = lex->end;
	struct lex_fault *fault = &lex->fault;
	if (at == end)
		fail(fault, at, end, "the rest of a string");
	else if (*at == '\\')
		behind = check_escape(at + 1, end, fault);
	else if ((unsigned char)*at >= 0x80)
		behind = check_utf8(&at, end, fault);
	else
		fail(fault, at, end, "no bare control character in a string");
	if (!behind)
		stay(lex, state, at);
	return behind;
}

/* Called for each key and string, from two places. */
__attribute__((always_inline)) static inline const char *read_string(struct lex *lex, enum lex_state state,
								     const char *at, struct sweep *sweep)
{
	for (;;) {
		at = sweep_special(sweep, at, lex->end);
		if (at < lex->end && *at == '"')
			return at + 1;
		at = read_special(lex, state, at);
		if (!at)
			return NULL;
	}
}

#define NONE (-1)

/* The next byte that is no space, and at its place. NONE at the end. */
static inline int peek(const char **at, const char *end)
{
	if (*at < end && (unsigned char)**at > ' ')
		return (unsigned char)**at;
	*at = lex_space(*at, end);
	return *at < end ? (unsigned char)**at : NONE;
}

/* A number is judged once the byte behind it has come; until then its bytes are passed over. */
static const char *read_number(struct lex *lex, const char *at)
{
	while (at < lex->end && is_of_number(*at))
		at++;
	if (at < lex->end || !lex->more)
		return check_number(lex->start + lex->token, lex->end, &lex->fault);
	stop(lex, LEX_IN_NUMBER, at, "the end of a number");
	return NULL;
}

static const char *read_word(struct lex *lex, const char *at)
{
	char letter = at < lex->end ? *at : '\0';
	const char *word = letter == 't' ? "true" : letter == 'f' ? "false" : letter == 'n' ? "null" : NULL;
	const char *behind = word ? check_word(at, lex->end, word, &lex->fault) : NULL;
	if (!word)
		stop(lex, LEX_VALUE, at, "a value");
	else if (!behind)
		stay(lex, LEX_VALUE, at);
	return behind;
}

/* Whether those two bytes come next: what is usual is taken at once, where servers send no space. */
static inline bool is_next(const char *at, const char *end, const char *pair)
{
	return end - at >= 2 && !memcmp(at, pair, 2);
}

/* Behind each label stands what may come in that state. */
bool lex_run(struct lex *lex, const char *start, const char *end)
{
	const char *at = start + lex->at;
	struct sweep sweep = {NULL, 0};
	int sign;
	lex->start = start;
	lex->end = end;
	switch (lex->state) {
	case LEX_VALUE:
		goto value;
	case LEX_FIRST_ELEMENT:
		goto first_element;
	case LEX_FIRST_KEY:
		goto first_key;
	case LEX_KEY:
		goto key;
	case LEX_IN_KEY:
		goto in_key;
	case LEX_COLON:
		goto colon;
	case LEX_IN_STRING:
		goto in_string;
	case LEX_IN_NUMBER:
		goto in_number;
	case LEX_BEHIND:
		goto behind;
	}
first_key:
	sign = peek(&at, end);
	if (sign == '}')
		goto closing;
	if (sign != '"')
		return stop(lex, LEX_FIRST_KEY, at, "a key in double quotes or '}'");
key:
	if (peek(&at, end) != '"')
		return stop(lex, LEX_KEY, at, "a key in double quotes");
	if (lex->kind == LEX_NOTED)
		lex->token = (size_t)(at - start);
	at++;
in_key:
	if (!(at = read_string(lex, LEX_IN_KEY, at, &sweep)))
		return false;
	if (lex->kind == LEX_NOTED)
		note_key(lex, at);
colon:
	if (is_next(at, end, ":\"")) {
		at += 2;
		goto in_string;
	}
	if (peek(&at, end) != ':')
		return stop(lex, LEX_COLON, at, "':'");
	at++;
value:
	if (is_next(at, end, "{}") && lex->kind != LEX_NOTED && lex->depth < JSON_DEPTH) {
		at += 2;
		goto behind;
	}
	sign = peek(&at, end);
	if (sign == '{') {
		bool noted = lex->kind == LEX_NOTED && note_object(lex->notes);
		if (!push(lex, noted ? LEX_NOTED : LEX_OBJECT))
			return stop(lex, LEX_VALUE, at, "no deeper nesting");
		at++;
		goto first_key;
	}
	if (sign == '[') {
		if (!push(lex, LEX_ARRAY))
			return stop(lex, LEX_VALUE, at, "no deeper nesting");
		at++;
		goto first_element;
	}
	if (sign == '-' || (sign >= '0' && sign <= '9')) {
		lex->token = (size_t)(at - start);
		goto in_number;
	}
	if (sign != '"') {
		if (!(at = read_word(lex, at)))
			return false;
		goto behind;
	}
	at++;
in_string:
	if (!(at = read_string(lex, LEX_IN_STRING, at, &sweep)))
		return false;
behind:
	if (!lex->depth)
		goto whole;
	if (lex->kind == LEX_OBJECT && is_next(at, end, ",\"")) {
		at += 2;
		goto in_key;
	}
	sign = peek(&at, end);
	if (sign == ',') {
		if (lex->kind == LEX_NOTED)
			note_end(lex, at);
		at++;
		if (lex->kind == LEX_ARRAY)
			goto value;
		goto key;
	}
	if (sign != (lex->kind == LEX_ARRAY ? ']' : '}'))
		return stop(lex, LEX_BEHIND, at, lex->kind == LEX_ARRAY ? "',' or ']'" : "',' or '}'");
closing:
	pop(lex, at);
	at++;
	goto behind;
first_element:
	sign = peek(&at, end);
	if (sign == ']')
		goto closing;
	if (sign == NONE)
		return stop(lex, LEX_FIRST_ELEMENT, at, "a value");
	goto value;
in_number:
	if (!(at = read_number(lex, at)))
		return false;
	goto behind;
whole:
	lex->at = (size_t)(at - start);
	return true;
}

const char *lex_value(const char *at, const char *end, struct lex_fault *fault)
{
	struct lex lex;
	lex_begin(&lex, false, NULL);
	if (lex_run(&lex, at, end))
		return at + lex.at;
	*fault = lex.fault;
	return NULL;
}
