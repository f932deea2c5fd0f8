/* yaml: YAML 1.1 as Kubernetes reads it (libyaml), to JSON and back. */
#ifndef PERILUNE_JSON_YAML_H
#define PERILUNE_JSON_YAML_H

#include "json/scan.h"

/* Each document of bytes as JSON text, in order; empty documents are left out. Plain scalars become null, bool, int or
 * float as sigs.k8s.io/yaml reads them: YAML 1.1's booleans (true/false, yes/no, on/off, y/n), octal 0777, 1_000;
 * integers exact to the whole of int64 and uint64; dates and base 60 stay strings; .inf and .nan are errors. Quoted
 * ones stay strings; keys that are numbers or booleans become strings. Anchors and aliases work, with the size of the
 * output capped at 64 MiB (so that aliases that multiply end in an error); merge keys (<<) work; keys that are no
 * scalars and duplicate keys are errors. JSON (one value that is an object or array, or several) passes through as it
 * is. 0, or -1 with line and column in err. on_document's non-zero return stops it with -1; json is borrowed for the
 * call. */
int yaml_to_json(const char *bytes, size_t length,
		 int (*on_document)(void *data, struct json_slice json, struct err *err), void *data, struct err *err);

/* The same, but ends with -1 soon after is_over has begun to say so; it is asked at each node of a document. */
int yaml_to_json_until(const char *bytes, size_t length,
		       int (*on_document)(void *data, struct json_slice json, struct err *err), void *data,
		       bool (*is_over)(void), struct err *err);

/* One JSON value as a YAML document in block style, keys in the order given, strings quoted where they would read as
 * something else. 0, or -1 with err. */
int yaml_from_json(struct json_slice json, struct buf *out, struct err *err);

#endif
