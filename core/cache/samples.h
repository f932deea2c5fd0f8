/* samples: what a dictionary is learnt from: JSON of objects, of large ones the first 16 KiB. Some can be kept apart as
 * tests, so that what was learnt is judged by what it has not seen. */
#ifndef PERILUNE_CACHE_SAMPLES_H
#define PERILUNE_CACHE_SAMPLES_H

#include "cache/dictionary.h"

struct samples;

/* most: bytes to learn from. tested: every ninth is a test. */
struct samples *samples_new(size_t most, bool tested);
void samples_free(struct samples *samples); /* NULL is harmless */

/* Copies the JSON. False where there is no room for more. */
bool samples_add(struct samples *samples, struct json_slice json);
size_t samples_room(size_t most, size_t length); /* how many of so many bytes each have room, tests included */

/* As dictionary_new and dictionary_begin, which borrows the samples until dictionary_finish. */
struct dictionary *samples_learn(const struct samples *samples, enum dictionary_kind kind);
struct dictionary_training *samples_train(const struct samples *samples, enum dictionary_kind kind);
/* Bytes that the tests take, packed. scratch is for the work. */
size_t samples_packed_size(const struct samples *samples, struct dictionary *dictionary, struct buf *scratch);

#endif
