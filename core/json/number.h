/* number: doubles as JSON text. */
#ifndef PERILUNE_JSON_NUMBER_H
#define PERILUNE_JSON_NUMBER_H

#include <stddef.h>

#define NUMBER_SIZE 32 /* holds every number as text, with its NUL */

/* The fewest digits that read back as the same double, laid out as Go's encoding/json does: plain between 1e-6 and
 * 1e21, else with an exponent. Returns the length; 0 for infinities and NaN, which JSON can't write. */
size_t number_format(double value, char out[NUMBER_SIZE]);

/* As Go's strconv.FormatFloat(value, 'g', -1, 32), which is what YAML keys that are floats become. */
size_t number_format_key(double value, char out[NUMBER_SIZE]);

#endif
