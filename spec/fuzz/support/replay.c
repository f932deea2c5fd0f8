/* replay: a target's main where libFuzzer is not: each file that is named, once. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "fuzz.h"

#define MOST_BYTES ((size_t)1 << 20)

/* Copied to its exact size, so that the sanitizer sees a read behind the end. */
static int replay(const char *path, uint8_t *room)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	size_t size = fread(room, 1, MOST_BYTES, file);
	fclose(file);
	fprintf(stderr, "%s: %zu bytes\n", path, size);
	uint8_t *data = alloc_copy(room, size);
	LLVMFuzzerTestOneInput(data, size);
	alloc_free(data);
	return 0;
}

int main(int count, char **paths)
{
	uint8_t *room = alloc_zero(MOST_BYTES);
	int failed = count < 2;
	for (int i = 1; i < count; i++)
		failed |= replay(paths[i], room) < 0;
	alloc_free(room);
	return failed;
}
