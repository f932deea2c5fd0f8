/* piece: one JSON value after another out of bytes that come in chunks of any size; for the splitter and the watch's
 * frames.
 *
 * A value that lies whole in its chunk is sliced there. Of one that does not, the bytes are held until it is whole;
 * reading goes on where it stood, so that none of them is read twice. */
#ifndef PERILUNE_JSON_PIECE_H
#define PERILUNE_JSON_PIECE_H

#include "json/lex.h"

struct piece {
	const char *what;  /* "a part of the list": for messages */
	const char *chunk; /* the one being fed */
	size_t fed;        /* bytes before it */
	struct buf held;   /* the value that is incomplete; empty when none is. Its limit is a whole value's too. */
	size_t held_at;    /* its offset in the stream */
	struct lex lex;
	struct lex_notes notes;
};

/* limit: most bytes of one value; 0 is none. way: of outlines; ends with NULL, and lives as long. */
void piece_init(struct piece *piece, size_t limit, const char *what, const char *const *way);
void piece_fini(struct piece *piece);

/* Takes what there is at *at (which is no space, and before end) and moves *at behind it. 1 when there may be more to
 * do, 0 when the chunk ran out, -1 with err. */
typedef int (*piece_step_fn)(void *data, const char **at, const char *end, struct err *err);

/* Calls step until the chunk has run out. 0, or step's -1. */
int piece_feed(struct piece *piece, const char *bytes, size_t length, piece_step_fn step, void *data, struct err *err);

/* For step. */
size_t piece_offset(const struct piece *piece, const char *at); /* of a place in the chunk, in the stream */
bool piece_is_open(const struct piece *piece);                  /* inside a value: what comes next belongs to it */

/* Reads the value at *at (which is no space, and before end), or the rest of the one that is held; moves *at behind
 * what was read. 1 with value, validated and borrowed until piece_drop; 0 when it goes on in the next chunk; -1 with
 * err. A number that touches the end goes on. */
int piece_read(struct piece *piece, const char **at, const char *end, struct json_slice *value, struct err *err);
/* Of the value that was read last, borrowed with it. */
struct outline piece_outline(const struct piece *piece, struct json_slice value);
void piece_drop(struct piece *piece);

int piece_too_large(const struct piece *piece, size_t offset, struct err *err); /* -1 */

#endif
