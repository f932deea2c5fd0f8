/* table: rows of texts, printed in columns that are as wide as their widest text, as kubectl does. */
#ifndef PERILUNE_CLI_TABLE_H
#define PERILUNE_CLI_TABLE_H

#include <stdio.h>

#include "base/buf.h"

#define TABLE_COLUMNS 12

struct table {
	struct buf text; /* every cell with a NUL behind it, row by row */
	unsigned columns;
	size_t cells;
};

/* titles: ended by NULL, TABLE_COLUMNS at most; they are the first row. */
void table_init(struct table *table, const char *const *titles);
void table_fini(struct table *table);

/* The next cell of the row, copied. What a terminal could take for a command is replaced; "" becomes "-". */
void table_add(struct table *table, const char *text);
void table_add_format(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All rows are whole. A table without rows below its titles prints nothing; another one begins with an empty line. */
void table_print(const struct table *table, FILE *out);

#endif
