/* labels: the label sets of cached objects, each held once however many objects have it. The bytes of metadata.labels
 * in; a number out, by which those bytes are found again while the object itself stays closed.
 *
 * Sets are told apart by their bytes, so two that mean the same may have two numbers. Objects whose labels are their
 * own don't pay for it: sets that were seen at one object only take LABELS_ALONE bytes at most, all together. Beyond
 * that a set is held from the second object on. What is not held is LABELS_UNKNOWN: then the object has to be opened.
 * Loop-only. */
#ifndef PERILUNE_CACHE_LABELS_H
#define PERILUNE_CACHE_LABELS_H

#include "json/scan.h"

#define LABELS_UNKNOWN 0 /* a set that is not held */
#define LABELS_NONE 1    /* the object has no labels: absent or null */

#define LABELS_BITS 30 /* of a number: an object's record has no more for it */

/* Some two thousand sets of the usual hundred bytes: all of a small cluster's, and little beside the objects of a large
 * one. */
#define LABELS_ALONE ((size_t)256 * 1024)
/* Bytes of a set; longer ones are not held. A few of them would take all of LABELS_ALONE. */
#define LABELS_LONGEST 4096

/* The number of the set, counted once more; LABELS_UNKNOWN where it is not held. labels: copied; .data NULL when
 * absent. key: of the object, by which two objects are told from two versions of one, or one that was made anew. */
uint32_t labels_take(struct json_slice labels, struct json_slice key);
/* As often as it was taken; then it may come to mean another set. LABELS_UNKNOWN and LABELS_NONE are harmless. */
void labels_give(uint32_t number);

/* Borrowed until it is given back; .data NULL for LABELS_NONE. Not for LABELS_UNKNOWN. */
struct json_slice labels_bytes(uint32_t number);
uint32_t labels_end(void); /* every number is below it */
size_t labels_held(void);  /* bytes of all sets, with what it takes to find them; for specs */

void labels_check(void); /* asserts the invariants, in debug builds */

#endif
