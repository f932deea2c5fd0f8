/* split: cuts the items out of a streamed Kubernetes list, so that no response is ever held whole.
 *
 * Chunks of any size in; out come the elements of the top-level "items" array, each validated, one at a time, and at
 * the end the list's own metadata. Bytes are held only for the item or member that is incomplete. */
#ifndef PERILUNE_JSON_SPLIT_H
#define PERILUNE_JSON_SPLIT_H

#include "json/outline.h"

struct split;

/* item is borrowed for the call; the members of an object and of its metadata are noted. A non-zero return stops the
 * splitter: split_feed returns -1 and leaves err alone. */
typedef int (*split_fn)(void *data, const struct outline *item, struct err *err);

/* item_limit: most bytes of one item, and of all other members together; 0 is no limit. */
struct split *split_new(size_t item_limit, split_fn on_item, void *data);
void split_free(struct split *split);

/* 0, or -1 with err (malformed, too large, or on_item's own). After -1 only split_free is allowed. */
int split_feed(struct split *split, const char *bytes, size_t length, struct err *err);

/* The stream has ended: 0 when one whole object was read, else -1 with err ("the list ended early, at byte n"). */
int split_finish(struct split *split, struct err *err);

/* Known once split_finish returned 0; borrowed until split_free. The whole top-level object without its items. */
struct json_slice split_rest(const struct split *split);
size_t split_bytes(const struct split *split); /* fed so far */

#endif
