#include "json/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A finite number that is not negative: 0.digits times ten to the point. */
struct decimal {
	char digits[20];
	int count;
	int point;
};

static bool reads_back(const char *text, double value, bool single)
{
	return single ? (double)strtof(text, NULL) == value : strtod(text, NULL) == value;
}

/* Any decimal of DBL_DIG digits survives the way through a double, so that a number for which so many suffice has no
 * shorter form than these without their zeros. Below DBL_MIN a double holds fewer digits, and each count has to be
 * tried. */
static struct decimal shortest(double value, bool single)
{
	int count = single ? FLT_DIG : DBL_DIG;
	char text[NUMBER_SIZE];
	if (value < (single ? FLT_MIN : DBL_MIN))
		count = 1;
	do
		snprintf(text, sizeof(text), "%.*e", count - 1, value);
	while (!reads_back(text, value, single) && count++ < (single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG));
	struct decimal decimal = {.point = atoi(strchr(text, 'e') + 1) + 1};
	for (const char *at = text; *at != 'e'; at++)
		if (*at != '.')
			decimal.digits[decimal.count++] = *at;
	while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
		decimal.count--;
	if (decimal.digits[0] == '0')
		decimal.point = 1;
	return decimal;
}

static char *write_plain(const struct decimal *decimal, char *out)
{
	if (decimal->point <= 0) {
		*out++ = '0';
		*out++ = '.';
		for (int zeros = decimal->point; zeros < 0; zeros++)
			*out++ = '0';
	}
	for (int place = 0; place < decimal->point || place < decimal->count; place++) {
		if (place && place == decimal->point)
			*out++ = '.';
		*out++ = place < decimal->count ? decimal->digits[place] : '0';
	}
	return out;
}

/* At least two digits of exponent, as C and Go's 'e' have it. */
static char *write_exponent(const struct decimal *decimal, char *out)
{
	*out++ = decimal->digits[0];
	if (decimal->count > 1)
		*out++ = '.';
	memcpy(out, decimal->digits + 1, (size_t)decimal->count - 1);
	out += decimal->count - 1;
	return out + sprintf(out, "e%+03d", decimal->point - 1);
}

/* Writes the sign and makes value positive. */
static char *write_sign(double *value, char *out)
{
	if (signbit(*value))
		*out++ = '-';
	*value = fabs(*value);
	return out;
}

#define MOST_WHOLE 1e15 /* up to here an integer's own digits are its fewest */

static char *write_whole(uint64_t value, char *out)
{
	char digits[20];
	size_t count = 0;
	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*out++ = digits[--count];
	return out;
}

size_t number_format(double value, char out[NUMBER_SIZE])
{
	if (!isfinite(value))
		return 0;
	char *end = write_sign(&value, out);
	if (value < MOST_WHOLE && value == (double)(uint64_t)value) {
		end = write_whole((uint64_t)value, end);
		*end = '\0';
		return (size_t)(end - out);
	}
	struct decimal decimal = shortest(value, false);
	if (value >= 1e-6 && value < 1e21) {
		end = write_plain(&decimal, end);
	} else {
		end = write_exponent(&decimal, end);
		if (end[-4] == 'e' && end[-3] == '-' && end[-2] == '0') { /* Go writes 1e-7, not 1e-07 */
			end[-2] = end[-1];
			end--;
		}
	}
	*end = '\0';
	return (size_t)(end - out);
}

size_t number_format_key(double value, char out[NUMBER_SIZE])
{
	value = (float)value;
	if (!isfinite(value))
		return 0;
	char *end = write_sign(&value, out);
	struct decimal decimal = shortest(value, true);
	bool plain = decimal.point > -4 && decimal.point <= 6;
	end = plain ? write_plain(&decimal, end) : write_exponent(&decimal, end);
	*end = '\0';
	return (size_t)(end - out);
}
