/* suggest: which of several names was meant by a misspelt word. */
#ifndef PERILUNE_BASE_SUGGEST_H
#define PERILUNE_BASE_SUGGEST_H

#include <stddef.h>

struct suggest {
	const char *word;
	const char *best; /* the nearest name so far; NULL when none was near enough */
	size_t distance;  /* of best */
};

void suggest_init(struct suggest *suggest, const char *word);
void suggest_offer(struct suggest *suggest, const char *name); /* borrowed */

/* Insertions, deletions, replacements and swaps of neighbours that make b of a, whatever the case of ASCII letters;
 * SIZE_MAX where either is longer than 63 bytes. */
size_t suggest_distance(const char *a, const char *b);

#endif
