/* Eight bytes after another as doubles: their text reads back as the same double, is JSON, and has as few digits as any
 * that does. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz.h"
#include "json/number.h"

static size_t count_digits(const char *text)
{
	size_t all = 0, last = 0;
	for (; *text && *text != 'e'; text++) {
		if (isdigit((unsigned char)*text) && (all || *text != '0'))
			all++;
		if (all && isdigit((unsigned char)*text) && *text != '0')
			last = all;
	}
	return last ? last : 1;
}

/* From one on, where the code under test begins higher. */
static size_t fewest_digits(double value, bool single)
{
	char text[64];
	for (int digits = 1; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, value);
		if ((single ? (double)strtof(text, NULL) : strtod(text, NULL)) == value)
			return count_digits(text);
	}
	return 17;
}

static void check_text(double value)
{
	char text[NUMBER_SIZE];
	size_t length = number_format(value, text);
	if (!isfinite(value)) {
		FUZZ_CHECK(!length);
		return;
	}
	FUZZ_CHECK(length < NUMBER_SIZE && strlen(text) == length && fuzz_is_json(text, length));
	double again = strtod(text, NULL);
	FUZZ_CHECK(!memcmp(&again, &value, sizeof(value)));
	FUZZ_CHECK(count_digits(text) == fewest_digits(value, false));
	double size = fabs(value);
	FUZZ_CHECK((strchr(text, 'e') != NULL) == (value != 0 && (size < 1e-6 || size >= 1e21)));
}

static void check_key(double value)
{
	char text[NUMBER_SIZE];
	float single = (float)value;
	size_t length = number_format_key(value, text);
	if (!isfinite(single)) {
		FUZZ_CHECK(!length);
		return;
	}
	FUZZ_CHECK(length < NUMBER_SIZE && strlen(text) == length && strtof(text, NULL) == single);
	FUZZ_CHECK(count_digits(text) == fewest_digits((double)single, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double value;
	for (; size >= sizeof(value); data += sizeof(value), size -= sizeof(value)) {
		memcpy(&value, data, sizeof(value));
		check_text(value);
		if (fabs(value) < 1e39)
			check_key(value);
	}
	return 0;
}
