/* shape: which members of an object are wanted, as the tree of keys that paths make; for who decodes no more than that.
 *
 * Of two paths of which one is the beginning of the other the shorter counts. Paths with [n] or [*] want nothing. */
#ifndef PERILUNE_JSON_SHAPE_H
#define PERILUNE_JSON_SHAPE_H

#include "json/scan.h"

struct json_shape;

struct json_shape *json_shape_new(void); /* that wants no member */
void json_shape_free(struct json_shape *shape);
void json_shape_add(struct json_shape *shape, const struct json_path *path);

/* What is wanted of the member of that key (with its quotes); NULL: nothing. Borrowed. */
const struct json_shape *json_shape_member(const struct json_shape *shape, struct json_slice key);
/* A path ends here: all that lies there is wanted. */
bool json_shape_is_whole(const struct json_shape *shape);

#endif
