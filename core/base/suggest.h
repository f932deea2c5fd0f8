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

#endif
