#include "script/stall.h"

#include <stdatomic.h>

#define TEXT 512
#define TRIES 1000 /* of a reader whom the writer disturbs */

/* A sequence lock: odd while the text is being written. The text's characters are atomic, as a reader may see them
 * change; it then reads again. */
static atomic_uint sequence;
static _Atomic char text[TEXT];
static size_t length; /* the loop's thread only */

static void append(const char *part)
{
	for (; *part && length < TEXT - 1; part++)
		atomic_store_explicit(&text[length++], *part, memory_order_relaxed);
	atomic_store_explicit(&text[length], '\0', memory_order_relaxed);
}

static void append_named(const char *before, const char *part)
{
	if (!part)
		return;
	append(before);
	append(part);
}

static void open_text(void)
{
	atomic_fetch_add(&sequence, 1);
	atomic_thread_fence(memory_order_release);
}

static void close_text(void)
{
	atomic_fetch_add_explicit(&sequence, 1, memory_order_release);
}

void stall_begin(const char *script, const char *what, const char *place)
{
	open_text();
	length = 0;
	append_named("script ", script);
	append_named(", ", what);
	append_named(" at ", place);
	close_text();
}

void stall_seen_at(const char *line)
{
	open_text();
	append_named(", seen at ", line);
	close_text();
}

void stall_end(void)
{
	open_text();
	length = 0;
	append("");
	close_text();
}

static void copy(char *out, size_t size)
{
	size_t i = 0;
	for (char c; i < size - 1 && i < TEXT && (c = atomic_load_explicit(&text[i], memory_order_relaxed)); i++)
		out[i] = c;
	out[i] = '\0';
}

bool stall_read(char *out, size_t size)
{
	for (int i = 0; i < TRIES; i++) {
		unsigned before = atomic_load_explicit(&sequence, memory_order_acquire);
		copy(out, size);
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load_explicit(&sequence, memory_order_relaxed) == before)
			return *out;
	}
	*out = '\0';
	return false;
}
