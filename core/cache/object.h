/* object: one immutable, counted Kubernetes object as the cache holds it: a small record and its JSON bytes.
 *
 * The bytes are raw or packed; only object.c knows which, and object_open gives JSON either way. Counts are loop-only.
 */
#ifndef PERILUNE_CACHE_OBJECT_H
#define PERILUNE_CACHE_OBJECT_H

#include <stdint.h>

#include "json/scan.h"

struct object;

#define OBJECT_VERSION_MAX 64 /* bytes of a resourceVersion; etcd's have 20 at most */
#define OBJECT_BYTES_MAX                                                                                               \
	((size_t)64 * 1024 * 1024) /* of one object's JSON; etcd takes 1.5 MiB unless told otherwise                   \
				    */

/* Copies bytes (a validated object with metadata.name). The count is 1. NULL with err: no name, or name, namespace, uid
 * or resourceVersion is no string or is longer than the API allows (253; a resourceVersion 64). */
struct object *object_new(struct json_slice bytes, struct err *err);
/* The same for bytes whose metadata is known from elsewhere, as from the item that they are a projection of. */
struct object *object_new_of(struct json_slice bytes, const struct json_meta *meta, struct err *err);
struct object *object_ref(struct object *object);
void object_unref(struct object *object); /* NULL is harmless */

/* The object's JSON. Raw: borrowed from the object. Packed: written to scratch and borrowed from there. */
struct json_slice object_open(const struct object *object, struct buf *scratch);

/* Borrowed, NUL-terminated, "" when absent. */
const char *object_namespace(const struct object *object);
const char *object_name(const struct object *object);
const char *object_uid(const struct object *object);
const char *object_version(const struct object *object); /* metadata.resourceVersion */
/* The cache key: "namespace/name", or "name" for cluster-scoped ones. */
const char *object_key(const struct object *object, size_t *length);
bool object_same_content(const struct object *a, const struct object *b);
size_t object_bytes(const struct object *object); /* memory it takes, record included */

/* <0, 0, >0 where both are integers of any length; *comparable false (and 0 only when equal) where not. */
int object_version_compare(const char *a, const char *b, bool *comparable);

#endif
