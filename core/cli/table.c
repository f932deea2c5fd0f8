#include "cli/table.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define GAP 3

void table_init(struct table *table, const char *const *titles)
{
	*table = (struct table){0};
	buf_init(&table->text, 0);
	for (; titles[table->columns]; table->columns++)
		table_add(table, titles[table->columns]);
}

void table_fini(struct table *table)
{
	buf_fini(&table->text);
}

void table_add(struct table *table, const char *text)
{
	const unsigned char *at = (const unsigned char *)(*text ? text : "-");
	for (size_t left = strlen((const char *)at), length; left; at += length, left -= length) {
		size_t sequence = utf8_sequence(at, left);
		/* C1 controls are the two bytes C2 80 to C2 9F. */
		bool plain = sequence > 2 || (sequence == 2 && !(at[0] == 0xC2 && at[1] < 0xA0)) ||
			     (sequence == 1 && *at >= ' ' && *at != 0x7F);
		length = sequence ? sequence : 1;
		buf_append(&table->text, plain ? (const void *)at : "?", plain ? length : 1);
	}
	buf_append_char(&table->text, '\0');
	table->cells++;
}

void table_add_format(struct table *table, const char *format, ...)
{
	char room[512];
	va_list args;
	va_start(args, format);
	vsnprintf(room, sizeof(room), format, args);
	va_end(args);
	table_add(table, room);
}

/* In characters; wide ones count as one. */
static unsigned width_of(const char *text)
{
	unsigned width = 0;
	for (; *text; text++)
		width += !utf8_is_tail((unsigned char)*text);
	return width;
}

static void measure(const struct table *table, unsigned *widths)
{
	const char *cell = table->text.data;
	for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
		unsigned width = width_of(cell), *widest = &widths[i % table->columns];
		*widest = width > *widest ? width : *widest;
	}
}

void table_print(const struct table *table, FILE *out)
{
	unsigned widths[TABLE_COLUMNS] = {0};
	const char *cell = table->text.data;
	if (table->cells <= table->columns)
		return;
	measure(table, widths);
	fputc('\n', out);
	for (size_t i = 0; i < table->cells; i++, cell += strlen(cell) + 1) {
		unsigned column = (unsigned)(i % table->columns);
		bool last = column + 1 == table->columns;
		fprintf(out, "%s%*s", cell, last ? 0 : (int)(widths[column] + GAP - width_of(cell)), "");
		if (last)
			fputc('\n', out);
	}
}
