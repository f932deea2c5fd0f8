#include "json/piece.h"

#include "json/lex.h"

/* What stays allocated between values; a larger one gives its memory back. */
#define KEPT_CAPACITY ((size_t)64 * 1024)

void piece_init(struct piece *piece, size_t limit, const char *what)
{
	*piece = (struct piece){.what = what};
	buf_init(&piece->held, limit);
}

void piece_fini(struct piece *piece)
{
	buf_fini(&piece->held);
}

int piece_feed(struct piece *piece, const char *bytes, size_t length, piece_step_fn step, void *data, struct err *err)
{
	const char *at = bytes, *end = bytes + length;
	int moved = 1;
	piece->chunk = bytes;
	while (moved > 0) {
		if (!piece_is_open(piece))
			at = lex_space(at, end);
		if (at == end)
			break;
		moved = step(data, &at, end, err);
	}
	piece->fed += length;
	piece->chunk = NULL;
	return moved < 0 ? -1 : 0;
}

size_t piece_offset(const struct piece *piece, const char *at)
{
	return piece->fed + (size_t)(at - piece->chunk);
}

bool piece_is_open(const struct piece *piece)
{
	return piece->held.length > 0;
}

int piece_too_large(const struct piece *piece, size_t offset, struct err *err)
{
	return err_set(err, "TooLarge", "byte %zu: %s is larger than %zu bytes", offset, piece->what,
		       piece->held.limit);
}

/* Inside a string: the place behind its end or behind what there is of it. */
static const char *cross_string(struct piece_edge *edge, const char *at, const char *end)
{
	if (edge->escaped) {
		edge->escaped = false;
		return at + 1;
	}
	at = lex_quote(at, end);
	if (at == end)
		return at;
	if (*at == '"')
		edge->string = false;
	else
		edge->escaped = true;
	return at + 1;
}

/* The place behind the value, or NULL when it goes on behind end. Looks at brackets and quotes alone; whether it is
 * JSON is judged when it is whole. */
static const char *find_edge(struct piece_edge *edge, const char *at, const char *end)
{
	while (at < end) {
		if (edge->string) {
			at = cross_string(edge, at, end);
			if (!edge->string && !edge->depth)
				return at;
			continue;
		}
		switch (*at) {
		case '"':
			edge->string = true;
			break;
		case '{':
		case '[':
			edge->depth++;
			break;
		case '}':
		case ']':
			if (!edge->depth)
				return at;
			if (!--edge->depth)
				return at + 1;
			break;
		case ',':
		case ' ':
		case '\n':
		case '\t':
		case '\r':
			if (!edge->depth)
				return at;
			break;
		}
		at++;
	}
	return NULL;
}

/* The held value is whole now: judges it. */
static int judge_held(const struct piece *piece, struct err *err)
{
	const char *start = piece->held.data, *end = start + piece->held.length;
	struct lex_fault fault;
	const char *behind = lex_value(start, end, &fault);
	if (!behind)
		return lex_fail(err, piece->held_at + (size_t)(fault.at - start), fault.expected);
	if (behind < end)
		return lex_fail(err, piece->held_at + (size_t)(behind - start), "the end of a value");
	return 0;
}

/* Reads on in a value that its chunk did not hold as a whole. */
static int read_on(struct piece *piece, const char **at, const char *end, struct json_slice *value, struct err *err)
{
	const char *behind = find_edge(&piece->edge, *at, end);
	size_t length = (size_t)((behind ? behind : end) - *at);
	if (buf_append(&piece->held, *at, length))
		return piece_too_large(piece, piece->held_at, err);
	*at += length;
	if (!behind)
		return 0;
	if (judge_held(piece, err))
		return -1;
	*value = (struct json_slice){piece->held.data, piece->held.length};
	return 1;
}

int piece_read(struct piece *piece, const char **at, const char *end, struct json_slice *value, struct err *err)
{
	if (piece_is_open(piece))
		return read_on(piece, at, end, value, err);
	struct lex_fault fault;
	const char *start = *at, *behind = lex_value(start, end, &fault);
	if (!behind && !fault.cut)
		return lex_fail(err, piece_offset(piece, fault.at), fault.expected);
	bool closed = *start == '"' || *start == '{' || *start == '[';
	if (!behind || (behind == end && !closed)) {
		piece->held_at = piece_offset(piece, start);
		piece->edge = (struct piece_edge){0};
		return read_on(piece, at, end, value, err);
	}
	*value = (struct json_slice){start, (size_t)(behind - start)};
	*at = behind;
	size_t limit = piece->held.limit;
	return limit && value->length > limit ? piece_too_large(piece, piece_offset(piece, start), err) : 1;
}

void piece_drop(struct piece *piece)
{
	if (piece->held.capacity > KEPT_CAPACITY)
		buf_fini(&piece->held);
	else
		buf_reset(&piece->held);
}
