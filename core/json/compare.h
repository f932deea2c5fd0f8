/* compare: whether JSON values mean the same, and which part of one another one asks for. Accepted bytes in, as in
 * scan.h.
 *
 * The same: members in any order, strings by their content, numbers by their value. Values that nest deeper than
 * COMPARE_DEPTH are never the same. */
#ifndef PERILUNE_JSON_COMPARE_H
#define PERILUNE_JSON_COMPARE_H

#include "json/scan.h"

#define COMPARE_DEPTH 520 /* a little more than a script's values can nest */

bool compare_same(struct json_slice a, struct json_slice b);

/* Every member of part is in whole with the same value, members that are objects themselves likewise; what is no object
 * has to be the same. Costs one pass over whole where both come in the same order. */
bool compare_holds(struct json_slice whole, struct json_slice part);

/* Appends what of whole lies in the shape: of an object the members that shape has too, each cut likewise; of anything
 * else, and where shape is no object, all. In the order of whole. 0, or -1 when out is full or it nests too deep. */
int compare_cut(struct json_slice whole, struct json_slice shape, struct buf *out);

#endif
