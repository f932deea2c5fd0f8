/* dictionary: what the objects of one resource have in common, learnt from some of them, so that each of them packs
 * into a tenth. The only file that knows zstd.
 *
 * Packed bytes can be opened with the dictionary they were packed with, and with no other; so whoever holds such bytes
 * holds a reference. Loop thread only. */
#ifndef PERILUNE_CACHE_DICTIONARY_H
#define PERILUNE_CACHE_DICTIONARY_H

#include "json/scan.h"

struct dictionary;

#define DICTIONARY_SAMPLES ((size_t)256 * 1024) /* bytes that are learnt from at most: 2 to 3 ms of work */

/* Learns from samples that lie behind each other, of these lengths. NULL where they are too few or too little alike;
 * never for another reason. The count is 1. */
struct dictionary *dictionary_new(const char *samples, const size_t *lengths, size_t count);
struct dictionary *dictionary_ref(struct dictionary *dictionary);
void dictionary_unref(struct dictionary *dictionary); /* NULL is harmless */

/* Nothing will be packed with it any more: its memory for that is given back. */
void dictionary_retire(struct dictionary *dictionary);

/* Replaces out's content with json, packed. -1 where that is not smaller. */
int dictionary_pack(struct dictionary *dictionary, struct json_slice json, struct buf *out);
/* Writes the `length` bytes that were packed to `to`. */
void dictionary_open(const struct dictionary *dictionary, struct json_slice packed, char *to, size_t length);

#endif
