/* transform: what somebody makes of each object before the store holds it. An object's JSON in, an object's JSON out.
 *
 * It comes after drop and keep, and may be given the same object twice. Which object it is stays: apiVersion, kind and
 * metadata's namespace, name, uid and resourceVersion. Where it fails, the object is kept as it came: a cache that left
 * it out would say that there is no such object, and what acts on that word deletes and creates. */
#ifndef PERILUNE_CACHE_TRANSFORM_H
#define PERILUNE_CACHE_TRANSFORM_H

#include "cache/object.h"

struct transform;

struct transform_options {
	const char *name;     /* begins what is said of a result that is refused; borrowed */
	const void *identity; /* informers of one specification are one where this is the same */
	/* Appends the new object to out, which is empty. 0, or -1 with err. Must not end the informer. */
	int (*run)(void *data, struct json_slice object, struct buf *out, struct err *err);
	/* The object, borrowed, as it is kept; NULL where its metadata is not as the API allows. */
	void (*on_error)(void *data, const struct err *err, const struct object *object);
	void (*free)(void *data);
	void *data;
};

struct transform *transform_new(const struct transform_options *options); /* the count is 1 */
struct transform *transform_ref(struct transform *transform);             /* NULL is harmless here and below */
void transform_unref(struct transform *transform);
const void *transform_identity(const struct transform *transform);

/* The object, validated JSON, becomes what the transform makes of it. */
void transform_apply(struct transform *transform, struct buf *object);

#endif
