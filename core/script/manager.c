#include "script/manager.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define MOST (MANAGER_SIZE - 1)
#define TAIL 9 /* "~" and eight digits */

/* FNV-1a: the API server keeps names for as long as objects live, so no hash that differs from run to run. */
static unsigned fold(const char *text)
{
	unsigned hash = 2166136261;
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7F)
			*text = '-';
}

static size_t cut(const char *text, size_t length)
{
	while (length && utf8_is_tail((unsigned char)text[length]))
		length--;
	return length;
}

void manager_write(const char *script, const char *controller, char out[MANAGER_SIZE])
{
	char *whole = alloc_format("perilune/%s%s%s", script, controller ? "/" : "", controller ? controller : "");
	make_printable(whole);
	if (strlen(whole) > MOST)
		snprintf(out, MANAGER_SIZE, "%.*s~%08x", (int)cut(whole, MOST - TAIL), whole, fold(whole));
	else
		strcpy(out, whole);
	alloc_free(whole);
}
