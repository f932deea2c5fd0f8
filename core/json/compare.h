/* compare: whether JSON values mean the same, and which part of one another one asks for. Accepted bytes in, as in
 * scan.h.
 *
 * The same: members in any order (each key once), strings by their content, numbers by their value. Values that nest
 * deeper than COMPARE_DEPTH are never the same. */
#ifndef PERILUNE_JSON_COMPARE_H
#define PERILUNE_JSON_COMPARE_H

#include "json/scan.h"

#define COMPARE_DEPTH 520 /* a little more than a script's values can nest */

bool compare_same(struct json_slice a, struct json_slice b);

/* Every member of part is in whole with the same value, members that are objects themselves likewise; what is no object
 * has to be the same. A null in part is in whole where that has no such member too. Costs one pass over whole where
 * both come in the same order. */
bool compare_holds(struct json_slice whole, struct json_slice part);

/* Appends what of whole lies in the shape: of an object the members that shape has too, each cut likewise, and null for
 * each one that whole lacks; of anything else, and where shape is no object, all. In the order of whole. 0, or -1 when
 * out is full, when it nests too deep, or when whole lacks a member that is not empty in shape. Empty are null, false,
 * 0, "", [] and an object of empty members: what Go leaves out of an answer. *lacking (not NULL) is set to true when
 * there is a null of that kind in out, else it stays. */
int compare_cut(struct json_slice whole, struct json_slice shape, struct buf *out, bool *lacking);

#endif
