/* object: one immutable, counted Kubernetes object as the cache holds it: a small record and its JSON bytes.
 *
 * The bytes are raw when the object is made, and may be packed later; only object.c knows which, and object_open gives
 * JSON either way. Counts are loop-only. */
#ifndef PERILUNE_CACHE_OBJECT_H
#define PERILUNE_CACHE_OBJECT_H

#include <stdint.h>

#include "base/list.h"
#include "cache/dictionary.h"

struct object;

#define OBJECT_VERSION_MAX 64 /* bytes of a resourceVersion; etcd's have 20 at most */
/* Of one object's JSON; etcd takes 1.5 MiB unless told otherwise. */
#define OBJECT_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* Copies bytes (a validated object with metadata.name). The count is 1. NULL with err: no name, or name, namespace, uid
 * or resourceVersion is no string or is longer than the API allows (253; a resourceVersion 64). */
struct object *object_new(struct json_slice bytes, struct err *err);
/* The same for bytes whose metadata is known from elsewhere, as from the item that they are a projection of. The labels
 * and the deletion timestamp must be those of the bytes. */
struct object *object_new_of(struct json_slice bytes, const struct json_meta *meta, struct err *err);
struct object *object_ref(struct object *object);
void object_unref(struct object *object); /* NULL is harmless */

/* The object's JSON. Raw: borrowed from the object, until the loop's next job. Packed: written to scratch, whose
 * content goes, and borrowed from there; NULL for one that is known to be raw. */
struct json_slice object_open(const struct object *object, struct buf *scratch);

/* Borrowed, NUL-terminated, "" when absent. */
const char *object_name(const struct object *object);
const char *object_version(const struct object *object); /* metadata.resourceVersion */
/* The cache key: "namespace/name", or "name" for cluster-scoped ones. */
const char *object_key(const struct object *object, size_t *length);
/* Borrowed, the head of the key: not NUL-terminated. *length is 0 for cluster-scoped ones. */
const char *object_namespace(const struct object *object, size_t *length);

#define OBJECT_UID_SIZE 37 /* a UUID and a NUL */
/* NUL-terminated, "" when absent. Written to room where it is a UUID, and borrowed from the object where not. */
const char *object_uid(const struct object *object, char room[OBJECT_UID_SIZE]);
bool object_same_uid(const struct object *a, const struct object *b);
bool object_has_uid(const struct object *object, const char *uid);

/* The number of its label set, by labels.h; LABELS_UNKNOWN: it has to be opened for its labels. */
uint32_t object_labels(const struct object *object);
bool object_is_ending(const struct object *object); /* it has a metadata.deletionTimestamp that is not null */

bool object_same_content(const struct object *a, const struct object *b);
size_t object_length(const struct object *object); /* bytes of its JSON, as long as it lives */
size_t object_held(const struct object *object);   /* bytes that it takes now; without its label set, which is shared */

/* <0, 0, >0 where both are integers of any length; *comparable false (and 0 only when equal) where not. */
int object_version_compare(const char *a, const char *b, bool *comparable);

/* Raw objects that wait to be packed, the oldest first. One leaves its line when it is packed or freed. */
struct object_line {
	struct list waiting; /* of struct raw */
	size_t bytes;        /* of JSON that waits */
};
void object_line_init(struct object_line *line);
void object_line_fini(struct object_line *line);                       /* what waits stays raw */
void object_line_add(struct object_line *line, struct object *object); /* a raw one that is in no line; not counted */
struct object *object_line_first(const struct object_line *line);      /* borrowed; NULL when none waits */
/* The one behind; NULL for the last. */
struct object *object_line_next(const struct object_line *line, const struct object *object);

/* The first, out of the line and counted anew: the caller's. NULL when none waits. */
struct object *object_line_take(struct object_line *line);

/* These are what it is with that dictionary; copied. */
void object_set_packed(struct object *object, struct dictionary *dictionary, struct json_slice packed);
/* Packs it, from raw or anew with another dictionary, and takes it out of its line. One that would not become smaller
 * stays as it is. scratch is for the work. */
void object_pack(struct object *object, struct dictionary *dictionary, struct buf scratch[2]);
bool object_is_packed(const struct object *object, const struct dictionary *dictionary); /* with that one */
bool object_is_packable(const struct object *object);  /* it is not too large for that */
bool object_is_only_mine(const struct object *object); /* nobody else holds a reference */

#endif
