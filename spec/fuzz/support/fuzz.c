#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void fuzz_broken(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
	abort();
}

struct fuzz_input fuzz_input_new(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *feed = size ? memchr(text, '\n', size) : NULL;
	size_t length = feed ? (size_t)(feed - text) : 0, skipped = feed ? length + 1 : 0;
	return (struct fuzz_input){
	    .head = alloc_text(text, length),
	    .body = {text + skipped, size - skipped},
	};
}

void fuzz_input_free(struct fuzz_input *input)
{
	alloc_free(input->head);
}

size_t fuzz_chunk(struct fuzz_chunks *chunks, size_t left)
{
	if (!*chunks->sizes)
		return left;
	if (!chunks->sizes[chunks->turn])
		chunks->turn = 0;
	size_t size = (unsigned char)chunks->sizes[chunks->turn++] % 32 + 1;
	return size < left ? size : left;
}
