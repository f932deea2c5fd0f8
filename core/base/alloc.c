#include "base/alloc.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Bytes. glibc would raise both by itself as larger pieces are freed, from 128 KiB: a heap whose end comes and goes has
 * each of its pages cleared again. To set one of them keeps it from changing the other. */
#define TOP_MOST (4 * 1024 * 1024)
#define PIECE_MOST (1024 * 1024)

#define TRIM_MOST ((size_t)64 * 1024 * 1024) /* bytes of heap */

static alloc_fn replaced;
static void *replaced_data;

/* The list ends in itself, so that a type's next is NULL only as long as it is in no list. */
static struct alloc_type types_end = {"", 0, &types_end};
static struct alloc_type *types = &types_end;

static void *out_of_memory(size_t size)
{
	fprintf(stderr, "perilune: out of memory (%zu bytes)\n", size);
	abort();
}

/* A size of 0 asks for a byte, as it would otherwise free, or give NULL. */
static void *take(void *memory, size_t size)
{
	if (!size)
		size = 1;
	return replaced ? replaced(replaced_data, memory, size) : realloc(memory, size);
}

void *alloc_try(size_t size)
{
	return take(NULL, size);
}

void *alloc_resize(void *memory, size_t size)
{
	void *result = take(memory, size);
	return result ? result : out_of_memory(size);
}

void *alloc_zero(size_t size)
{
	if (replaced)
		return memset(alloc_resize(NULL, size), 0, size);
	void *memory = calloc(1, size ? size : 1);
	return memory ? memory : out_of_memory(size);
}

void alloc_tune(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, TOP_MOST);
	mallopt(M_MMAP_THRESHOLD, PIECE_MOST);
}

void alloc_trim(void)
{
	if (mallinfo2().arena <= TRIM_MOST)
		malloc_trim(0);
}

void *alloc_copy(const void *bytes, size_t length)
{
	void *memory = alloc_resize(NULL, length);
	if (length)
		memcpy(memory, bytes, length);
	return memory;
}

char *alloc_string(const char *text)
{
	return text ? alloc_copy(text, strlen(text) + 1) : NULL;
}

char *alloc_text(const char *bytes, size_t length)
{
	char *text = alloc_resize(NULL, length + 1);
	if (length)
		memcpy(text, bytes, length);
	text[length] = '\0';
	return text;
}

char *alloc_format(const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	size_t size = length < 0 ? 1 : (size_t)length + 1;
	char *text = alloc_resize(NULL, size);
	text[0] = '\0';
	vsnprintf(text, size, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void alloc_free(void *memory)
{
	if (!memory)
		return;
	if (replaced)
		replaced(replaced_data, memory, 0);
	else
		free(memory);
}

void alloc_count(struct alloc_type *type, int change)
{
	if (!type->next) {
		type->next = types;
		types = type;
	}
	type->live += change;
}

void *alloc_object(struct alloc_type *type, size_t size)
{
	alloc_count(type, 1);
	return alloc_zero(size);
}

void alloc_object_free(struct alloc_type *type, void *object)
{
	if (!object)
		return;
	type->live--;
	alloc_free(object);
}

long alloc_live(FILE *out)
{
	long sum = 0;
	for (struct alloc_type *type = types; type != &types_end; type = type->next) {
		if (out && type->live)
			fprintf(out, "%s %ld\n", type->name, type->live);
		sum += type->live;
	}
	return sum;
}

void alloc_replace(alloc_fn fn, void *data)
{
	replaced = fn;
	replaced_data = data;
}
