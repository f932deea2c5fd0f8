/* applied: what this process has applied to objects, so that an apply which would change nothing can be left out
 * (k8s.ensure).
 *
 * For each object and field manager: the content as it was sent, and what the server made of it, which is its answer
 * cut to the shape of the content; so defaults and normalised quantities don't matter. What another writer changed is
 * seen by comparing that with a cached object. Content that the answer does not show, such as a Secret's stringData, is
 * not remembered. Memory is bounded: what was used longest ago is forgotten, which costs a
 * request and nothing else. */
#ifndef PERILUNE_CACHE_APPLIED_H
#define PERILUNE_CACHE_APPLIED_H

#include "cache/object.h"

#define APPLIED_BYTES ((size_t)32 << 20) /* of all that is remembered */

struct applied;
struct applied *applied_new(size_t most_bytes);
void applied_free(struct applied *applied); /* NULL is harmless */

/* key names the object and the manager in any bytes; content and answer are objects. Copied. */
void applied_put(struct applied *applied, struct json_slice key, struct json_slice content, struct json_slice answer);
/* Before each apply: what comes of it is not known before its answer. */
void applied_forget(struct applied *applied, struct json_slice key);
/* The same content was put for key. */
bool applied_knows(struct applied *applied, struct json_slice key, struct json_slice content);
/* What was put for key is what object holds: its uid is the same, it is not being deleted, all values are there, and
 * where the answer had none there is none, which only a whole object, not a projection, can tell. */
bool applied_agrees(const struct applied *applied, struct json_slice key, const struct object *object, bool whole);

#endif
