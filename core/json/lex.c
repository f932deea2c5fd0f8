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

/* False when there are too many levels. */
static inline bool push(struct lex *lex, bool object)
{
	if (lex->depth == JSON_DEPTH)
		return false;
	uint64_t *word = &lex->objects[lex->depth >> 6], bit = (uint64_t)1 << (lex->depth & 63);
	*word = (bit == 1 ? 0 : *word & ~bit) | (object ? bit : 0);
	lex->depth++;
	lex->object = object;
	return true;
}

static inline void pop(struct lex *lex)
{
	lex->depth--;
	unsigned above = lex->depth - 1; /* of the outermost one it does not matter */
	lex->object = lex->depth && lex->objects[above >> 6] >> (above & 63) & 1;
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

void lex_begin(struct lex *lex, bool more, struct lex_notes *notes)
{
	lex->state = LEX_VALUE;
	lex->at = 0;
	lex->more = more;
	lex->depth = 0;
	lex->object = false;
	lex->notes = notes;
	lex->noted = notes ? 0 : LEX_NEVER;
	if (notes) {
		notes->count = 0;
		notes->leads = true;
	}
}

/* An object begins where members are noted. */
static void note_object(struct lex *lex)
{
	struct lex_notes *notes = lex->notes;
	if (!notes->leads)
		return;
	if (lex->noted)
		notes->list[notes->pending[lex->noted - 1] - 1].open = true;
	notes->pending[lex->noted++] = 0;
	notes->leads = false;
}

/* `at` is behind the key. */
static void note_key(struct lex *lex, const char *at)
{
	struct lex_notes *notes = lex->notes;
	if (notes->count == OUTLINE_MOST) {
		lex->noted = LEX_NEVER;
		return;
	}
	struct outline_note *note = &notes->list[notes->count++];
	*note = (struct outline_note){.key = lex->token, .behind_key = (size_t)(at - lex->start)};
	notes->pending[lex->noted - 1] = notes->count;
	const char *step = notes->way[lex->noted - 1];
	size_t length = note->behind_key - note->key - 2;
	notes->leads = step && length == strlen(step) && !memcmp(lex->start + note->key + 1, step, length);
}

/* `at` is at the comma or bracket behind a member, or at the bracket of an object without members. */
static void note_end(struct lex *lex, const char *at)
{
	struct lex_notes *notes = lex->notes;
	if (!notes->pending[lex->noted - 1])
		return;
	struct outline_note *note = &notes->list[notes->pending[lex->noted - 1] - 1];
	note->behind_value = (size_t)(at - lex->start);
	note->next = notes->count;
}

struct outline lex_outline(const struct lex *lex, struct json_slice value)
{
	struct outline outline = outline_of(value);
	bool complete = lex->notes && !lex->noted && json_type(value) == JSON_OBJECT;
	if (!complete)
		return outline;
	outline.base = value.data;
	outline.notes = lex->notes->list;
	outline.last = lex->notes->count;
	return outline;
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

/* From the first byte on that is no plain text. Returns the place behind the string, or NULL. */
static const char *read_rest(struct lex *lex, enum lex_state state, const char *at)
{
	const char *end = lex->end, *behind = at;
	struct lex_fault *fault = &lex->fault;
	while (behind) {
		at = sweep_special(behind, end);
		if (at == end)
			behind = fail(fault, at, end, "the rest of a string");
		else if (*at == '"')
			return at + 1;
		else if (*at == '\\')
			behind = check_escape(at + 1, end, fault);
		else if ((unsigned char)*at >= 0x80)
			behind = check_utf8(&at, end, fault);
		else
			behind = fail(fault, at, end, "no bare control character in a string");
	}
	stay(lex, state, at);
	return NULL;
}

/* Most strings end at the first byte that is no plain text. */
static inline const char *read_string(struct lex *lex, enum lex_state state, const char *at)
{
	at = sweep_special(at, lex->end);
	return at < lex->end && *at == '"' ? at + 1 : read_rest(lex, state, at);
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
	const char *word = *at == 't' ? "true" : *at == 'f' ? "false" : *at == 'n' ? "null" : NULL;
	const char *behind = word ? check_word(at, lex->end, word, &lex->fault) : NULL;
	if (!word)
		stop(lex, LEX_VALUE, at, "a value");
	else if (!behind)
		stay(lex, LEX_VALUE, at);
	return behind;
}

/* Behind each label stands what may come in that state. */
bool lex_run(struct lex *lex, const char *start, const char *end)
{
	const char *at = start + lex->at;
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
	at = lex_space(at, end);
	if (at == end || (*at != '"' && *at != '}'))
		return stop(lex, LEX_FIRST_KEY, at, "a key in double quotes or '}'");
	if (*at == '}')
		goto closing;
key:
	at = lex_space(at, end);
	if (at == end || *at != '"')
		return stop(lex, LEX_KEY, at, "a key in double quotes");
	lex->token = (size_t)(at++ - start);
in_key:
	if (!(at = read_string(lex, LEX_IN_KEY, at)))
		return false;
	if (lex->depth == lex->noted)
		note_key(lex, at);
colon:
	at = lex_space(at, end);
	if (at == end || *at != ':')
		return stop(lex, LEX_COLON, at, "':'");
	at++;
value:
	at = lex_space(at, end);
	if (at == end)
		return stop(lex, LEX_VALUE, at, "a value");
	if (*at == '{' || *at == '[') {
		bool object = *at == '{';
		if (object && lex->depth == lex->noted)
			note_object(lex);
		if (!push(lex, object))
			return stop(lex, LEX_VALUE, at, "no deeper nesting");
		at++;
		if (object)
			goto first_key;
		goto first_element;
	}
	if (*at == '-' || (*at >= '0' && *at <= '9')) {
		lex->token = (size_t)(at - start);
		goto in_number;
	}
	if (*at != '"') {
		if (!(at = read_word(lex, at)))
			return false;
		goto behind;
	}
	at++;
in_string:
	if (!(at = read_string(lex, LEX_IN_STRING, at)))
		return false;
behind:
	if (!lex->depth)
		goto whole;
	at = lex_space(at, end);
	if (at < end && *at == ',') {
		if (lex->depth == lex->noted)
			note_end(lex, at);
		at++;
		if (lex->object)
			goto key;
		goto value;
	}
	if (at == end || *at != (lex->object ? '}' : ']'))
		return stop(lex, LEX_BEHIND, at, lex->object ? "',' or '}'" : "',' or ']'");
closing:
	if (lex->depth == lex->noted) {
		note_end(lex, at);
		lex->noted--;
	}
	pop(lex);
	at++;
	goto behind;
first_element:
	at = lex_space(at, end);
	if (at == end)
		return stop(lex, LEX_FIRST_ELEMENT, at, "a value");
	if (*at == ']')
		goto closing;
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
