#include "json/piece.h"

/* What stays allocated between values; a larger one gives its memory back. */
#define KEPT_CAPACITY ((size_t)64 * 1024)

/* Bytes that are held at once in the search for a value's end: it is as many too many at most, which costs less than
 * to begin anew more often. */
#define STEP 2048

void piece_init(struct piece *piece, size_t limit, const char *what, const char *const *way)
{
	*piece = (struct piece){.what = what, .notes.way = way};
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

/* Where the held value ends is only known when it was read: of the bytes of this chunk, which begin at `before`, those
 * behind it go again. A number like 01 ends before what was held as its bytes. */
static int give_back(struct piece *piece, const char **at, size_t before, struct err *err)
{
	struct buf *held = &piece->held;
	size_t length = piece->lex.at;
	if (length < before)
		return lex_fail(err, piece->held_at + length, "the end of a value");
	*at -= held->length - length;
	held->length = length;
	held->data[length] = '\0';
	return 1;
}

static size_t choose_step(const struct piece *piece, size_t left)
{
	const struct buf *held = &piece->held;
	size_t step = left < STEP ? left : STEP;
	return held->limit && step > held->limit - held->length ? held->limit - held->length : step;
}

/* Reads on in a value that its chunk did not hold as a whole. */
static int read_on(struct piece *piece, const char **at, const char *end, struct json_slice *value, struct err *err)
{
	struct buf *held = &piece->held;
	while (*at < end) {
		size_t before = held->length, step = choose_step(piece, (size_t)(end - *at));
		if (!step || buf_append(held, *at, step))
			return piece_too_large(piece, piece->held_at, err);
		*at += step;
		if (lex_run(&piece->lex, held->data, held->data + held->length)) {
			*value = (struct json_slice){held->data, piece->lex.at};
			return give_back(piece, at, before, err);
		}
		const struct lex_fault *fault = &piece->lex.fault;
		if (!fault->cut)
			return lex_fail(err, piece->held_at + (size_t)(fault->at - held->data), fault->expected);
	}
	return 0;
}

/* What there is of a value that goes on in the next chunk. */
static int hold(struct piece *piece, const char **at, const char *end, struct err *err)
{
	piece->held_at = piece_offset(piece, *at);
	if (buf_append(&piece->held, *at, (size_t)(end - *at)))
		return piece_too_large(piece, piece->held_at, err);
	*at = end;
	return 0;
}

int piece_read(struct piece *piece, const char **at, const char *end, struct json_slice *value, struct err *err)
{
	if (piece_is_open(piece))
		return read_on(piece, at, end, value, err);
	const char *start = *at;
	struct lex *lex = &piece->lex;
	lex_begin(lex, true, &piece->notes);
	if (!lex_run(lex, start, end))
		return lex->fault.cut ? hold(piece, at, end, err)
				      : lex_fail(err, piece_offset(piece, lex->fault.at), lex->fault.expected);
	*value = (struct json_slice){start, lex->at};
	*at = start + lex->at;
	size_t limit = piece->held.limit;
	return limit && value->length > limit ? piece_too_large(piece, piece_offset(piece, start), err) : 1;
}

struct outline piece_outline(const struct piece *piece, struct json_slice value)
{
	return lex_outline(&piece->lex, value);
}

void piece_drop(struct piece *piece)
{
	if (piece->held.capacity > KEPT_CAPACITY)
		buf_fini(&piece->held);
	else
		buf_reset(&piece->held);
}
