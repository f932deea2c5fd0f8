/* fuzz: what the fuzz targets share. A target is one file of spec/fuzz/: a function that takes bytes and aborts when a
 * promise about them is broken. libFuzzer looks for such bytes (scripts/fuzz); the specs run those that were found.
 *
 * Where an input has a head, that is its first line: what the bytes behind it are to be met with. */
#ifndef PERILUNE_FUZZ_H
#define PERILUNE_FUZZ_H

#include "json/outline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stands in the optimised build too. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))
void fuzz_broken(const char *file, int line, const char *condition) __attribute__((noreturn));

struct fuzz_input {
	char *head; /* owned, without its line feed; cut at a NUL */
	struct json_slice body;
};
struct fuzz_input fuzz_input_new(const uint8_t *data, size_t size);
void fuzz_input_free(struct fuzz_input *input);

/* The sizes of chunks, one for each letter of the head, again and again. */
struct fuzz_chunks {
	const char *sizes; /* borrowed; "": everything at once */
	size_t turn;
};
size_t fuzz_chunk(struct fuzz_chunks *chunks, size_t left); /* 1 to left, which is not 0 */

/* A second judge of what is one JSON value, written plainly and without a line in common with core/json/lex.c. */
bool fuzz_is_json(const char *bytes, size_t length);

/* Whether two validated values mean the same: members in any order, of equal keys the last, strings by their content,
 * numbers by their value (as integers where both are). */
bool fuzz_same(struct json_slice a, struct json_slice b);

/* What is read, dropped and kept by an outline's notes is what a walk over its bytes reads, drops and keeps. */
void fuzz_check_outline(const struct outline *outline);

#endif
