/* resolve: what a plain YAML scalar means, by the rules of Go's yaml.v2, on which kubectl stands: YAML 1.1's words, y
 * and n among them, octal with a leading 0, underscores in numbers; no base 60. */
#ifndef PERILUNE_JSON_RESOLVE_H
#define PERILUNE_JSON_RESOLVE_H

#include "base/buf.h"

enum resolved { RESOLVED_STRING, RESOLVED_NULL, RESOLVED_BOOL, RESOLVED_INT, RESOLVED_FLOAT, RESOLVED_NO_JSON };

/* Appends the JSON form of text to out; of .inf and .nan (RESOLVED_NO_JSON), and where out is NULL, nothing. */
enum resolved resolve_plain(const char *text, size_t length, struct buf *out);

#endif
