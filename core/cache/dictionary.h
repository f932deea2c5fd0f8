/* dictionary: what the objects of one resource have in common, learnt from some of them, so that each of them packs
 * into a fifth to a tenth. The only file that knows zstd.
 *
 * Packed bytes can be opened with the dictionary they were packed with, and with no other; so whoever holds such bytes
 * holds a reference. Loop thread only, whatever threads it has of its own. */
#ifndef PERILUNE_CACHE_DICTIONARY_H
#define PERILUNE_CACHE_DICTIONARY_H

#include "json/scan.h"

struct dictionary;

/* QUICK: little memory, for objects that come faster than they can be packed. LIGHT: they take a twelfth less, and half
 * as much time again. DENSE: they take a seventh less than that; for many that stay. */
enum dictionary_kind { DICTIONARY_QUICK, DICTIONARY_LIGHT, DICTIONARY_DENSE };

/* Learns from samples that lie behind each other, of these lengths. NULL where they are too few or too little alike;
 * never for another reason. The count is 1. */
struct dictionary *dictionary_new(enum dictionary_kind kind, const char *samples, const size_t *lengths, size_t count);

/* The same on a thread of its own. The samples and lengths are borrowed until dictionary_finish. */
struct dictionary_training;
struct dictionary_training *dictionary_begin(enum dictionary_kind kind, const char *samples, const size_t *lengths,
					     size_t count);
bool dictionary_is_ready(const struct dictionary_training *training);
/* Waits where it is not ready; ends the training. As dictionary_new. */
struct dictionary *dictionary_finish(struct dictionary_training *training);

struct dictionary *dictionary_ref(struct dictionary *dictionary);
void dictionary_unref(struct dictionary *dictionary); /* NULL is harmless */

/* It is ready to pack; and, nothing will be packed with it for a while: its memory for that is given back until it is
 * needed again. rest: NULL is harmless. */
void dictionary_wake(struct dictionary *dictionary);
void dictionary_rest(struct dictionary *dictionary);

/* Replaces out's content with json, packed. -1 where that is not smaller. */
int dictionary_pack(struct dictionary *dictionary, struct json_slice json, struct buf *out);
/* The same on another thread, which has a worker of its own, while the dictionary is awake. to has room for as many
 * bytes as json. The length; 0 where it would not be smaller. */
struct dictionary_worker;
struct dictionary_worker *dictionary_worker_new(void);
void dictionary_worker_free(struct dictionary_worker *worker); /* NULL is harmless */
size_t dictionary_worker_pack(struct dictionary_worker *worker, const struct dictionary *dictionary,
			      struct json_slice json, char *to);

/* A copy of packed bytes, in memory that goes back to the system with what else was packed with it. */
void *dictionary_keep(struct dictionary *dictionary, struct json_slice packed);
void dictionary_drop(struct dictionary *dictionary, void *packed, size_t length);
/* Writes the `length` bytes that were packed to `to`. */
void dictionary_open(const struct dictionary *dictionary, struct json_slice packed, char *to, size_t length);

#endif
