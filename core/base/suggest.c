#include "base/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LONGEST 63

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return a == b || ((a ^ b) == 0x20 && (a | 0x20) >= 'a' && (a | 0x20) <= 'z');
}

size_t suggest_distance(const char *a, const char *b)
{
	size_t table[LONGEST + 1][LONGEST + 1], a_length = strlen(a), b_length = strlen(b);
	if (a_length > LONGEST || b_length > LONGEST)
		return SIZE_MAX;
	for (size_t i = 0; i <= a_length; i++)
		table[i][0] = i;
	for (size_t j = 0; j <= b_length; j++)
		table[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		for (size_t j = 1; j <= b_length; j++) {
			size_t best = table[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
			best = least(best, least(table[i - 1][j], table[i][j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				best = least(best, table[i - 2][j - 2] + 1);
			table[i][j] = best;
		}
	}
	return table[a_length][b_length];
}

void suggest_init(struct suggest *suggest, const char *word)
{
	*suggest = (struct suggest){word, NULL, (strlen(word) + 2) / 3 + 1};
}

/* Near is up to a third of the word wrong; a word that is a name's beginning was cut short. */
void suggest_offer(struct suggest *suggest, const char *name)
{
	size_t word_length = strlen(suggest->word), distance = suggest_distance(suggest->word, name);
	if (word_length > 1 && !strncmp(name, suggest->word, word_length))
		distance = least(distance, 1);
	if (distance < suggest->distance) {
		suggest->best = name;
		suggest->distance = distance;
	}
}
