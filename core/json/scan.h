/* scan: the one JSON scanner. Bytes in; validation, slices and paths out; nothing is decoded into a tree.
 *
 * RFC 8259, and stricter where Kubernetes is: valid UTF-8 only, no lone surrogate escapes, nesting of at most
 * JSON_DEPTH (the server's own limit), no BOM. A slice is borrowed from the bytes that were given; it holds one whole
 * value without the space around it. Except for json_validate, functions take bytes that json_validate (or the splitter
 * or frame, which call it) has accepted. */
#ifndef PERILUNE_JSON_SCAN_H
#define PERILUNE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Go's decoder takes 10,000 levels, so that no object which a server could store is unreadable here; the rest is for
 * what stands around an object. Nothing in core/json/ may recurse as deep as a value nests. */
#define JSON_DEPTH 10048

struct json_slice {
	const char *data; /* NULL: no such value */
	size_t length;
};

/* The whole of bytes is one JSON value. 0, or -1 with the byte offset and what was expected in err. */
int json_validate(const char *bytes, size_t length, struct err *err);

/* The value in accepted bytes, without the space around it. */
struct json_slice json_trim(const char *bytes, size_t length);

enum json_type { JSON_NONE, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_type json_type(struct json_slice value);

/* Visits members of an object or elements of an array: start with json_iterate, then json_next until false. */
struct json_iter {
	const char *at, *end;
	struct json_slice key; /* with its quotes, still escaped; empty in arrays */
	struct json_slice value;
};
struct json_iter json_iterate(struct json_slice container); /* of anything else: empty */
bool json_next(struct json_iter *iter);

/* Compares the unescaped content; false for non-strings. */
bool json_string_equals(struct json_slice string, const char *text);
/* Appends the unescaped content; -1 for non-strings or a full buf. */
int json_string_append(struct json_slice string, struct buf *out);
/* Unescaped, NUL-terminated, owned by the caller; NULL for non-strings. */
char *json_string_copy(struct json_slice string);
bool json_bool(struct json_slice value, bool fallback);
int json_integer(struct json_slice value, int64_t *out); /* -1 when it is no integer of int64 */

/* The member of an object; .data NULL when absent or when object is none. The last one of equal keys counts,
 * as in Go. */
struct json_slice json_get(struct json_slice object, const char *key);

/* A path as scripts write it: keys joined by dots; a key with dots as ['example.com/x'] or ["…"]; [0] takes an array's
 * element; [*] all elements. */
struct json_path;
struct json_path *json_path_new(const char *text, struct err *err); /* NULL with err when malformed */
void json_path_free(struct json_path *path);
const char *json_path_text(const struct json_path *path); /* borrowed */
bool json_path_is_keys(const struct json_path *path);     /* no [n] or [*] in it */
/* The key at that place of such a path; NULL behind the last. Borrowed, and no NUL behind it. */
const char *json_path_key(const struct json_path *path, size_t place, size_t *length);

/* The first value at path (.data NULL when there is none). */
struct json_slice json_find(struct json_slice object, const struct json_path *path);
/* Every value at path (more than one only with [*]). */
void json_find_all(struct json_slice object, const struct json_path *path,
		   void (*on_value)(void *data, struct json_slice value), void *data);

/* What the cache must know of an object, found in one pass. Slices with quotes, as above; .data NULL when absent or
 * null. */
struct json_meta {
	struct json_slice api_version, kind, metadata;
	struct json_slice name, namespace, uid, resource_version, generation, labels, deletion_timestamp, annotations;
};
int json_meta(struct json_slice object, struct json_meta *out); /* -1 when it is no object or has no metadata object */

#endif
