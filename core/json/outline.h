/* outline: an object's bytes, and where its members lie if that was noted while they were validated. So an object that
 * comes from the server is walked once: its metadata is found, and what is dropped of it is cut out, by the notes.
 *
 * Noted are the members of a value that is an object, and of those objects in it that a way leads to. An object without
 * notes, as one with more than OUTLINE_MOST members is, is walked instead; nobody sees a difference. */
#ifndef PERILUNE_JSON_OUTLINE_H
#define PERILUNE_JSON_OUTLINE_H

#include "json/scan.h"

#define OUTLINE_MOST 64
#define OUTLINE_LEVELS 3 /* of noted objects, one in another: a way has two steps at most */

/* A member. Offsets are from the start of the whole value that was read. */
struct outline_note {
	size_t key, behind_key, behind_value;
	unsigned next; /* the index of the note behind this one and those of its own members */
	bool open;     /* its members are noted */
};

/* Borrowed, as a slice is: of the bytes, and of whoever read them. */
struct outline {
	struct json_slice bytes;
	const char *base; /* where offsets begin; NULL: nothing is noted */
	const struct outline_note *notes;
	unsigned first, last; /* of the members' notes; last is behind them */
};

struct outline outline_of(struct json_slice value); /* without notes */

/* As json_iterate and json_next, for an object or an array. */
struct outline_iter {
	struct json_slice key;
	struct outline value;
	struct outline of;
	struct json_iter walk; /* where nothing is noted */
};
struct outline_iter outline_iterate(const struct outline *outline);
bool outline_next(struct outline_iter *iter);

/* As json_get. */
struct json_slice outline_get(const struct outline *object, const char *key);

int outline_meta(const struct outline *object, struct json_meta *out); /* as json_meta */

/* Appends object to out without the values at any of the paths (json_path_is_keys; others match nothing). Emptied
 * parents stay. 0, or -1 when out is full. */
int outline_drop(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out);
/* The opposite: only what lies at one of the paths, and always apiVersion, kind, metadata.name, namespace, uid and
 * resourceVersion. */
int outline_keep(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out);

#endif
