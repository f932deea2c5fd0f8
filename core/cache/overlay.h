/* overlay: the host's own writes, as the API answered them, over what the watch has told. Answers in; a store that
 * shows the newer of both, and for each key that differs its history: what handlers were told.
 *
 * A key has an entry if and only if an answer is ahead of the watch there. Without an entry, the store's object is the
 * history. An entry ends when the watch passes its version, however that shows: by the write's own event, by a later
 * one of any key, by a bookmark or by a relist. The store then shows the history again. A deletion's version is not
 * known, only one before it; so its entry, a tombstone, lasts beyond that for as long as the watch still shows that
 * uid.
 *
 * Versions have to be integers: what can't be ordered makes no entry. Entries are in flight, so to say: their number
 * does not grow with the cache. */
#ifndef PERILUNE_CACHE_OVERLAY_H
#define PERILUNE_CACHE_OVERLAY_H

#include "base/list.h"
#include "cache/keymap.h"
#include "cache/store.h"

#define OVERLAY_MOST 10000 /* entries, where a watch is stuck for long; later writes then wait for their events */

struct overlay {
	struct store *store; /* borrowed */
	struct keymap entries;
	struct list ahead;  /* entries by version */
	struct list passed; /* tombstones whose version the watch has passed, while it still shows the uid */
	bool relisting;     /* from overlay_lift to overlay_lay */
};

struct overlay_entry;

void overlay_init(struct overlay *overlay, struct store *store);
void overlay_fini(struct overlay *overlay); /* the store stays as it is */

/* The API answered a write with this object (counted anew), whose version the watch has not passed. shown: it belongs
 * to what the watch selects; else its key is hidden. Ignored where the store or an earlier answer is as new. */
void overlay_put(struct overlay *overlay, struct object *object, bool shown);
/* The API answered that the object of this key and uid is gone. last: it as the answer had it, where the watch has not
 * passed that version; NULL where it is not known or not selected. */
void overlay_remove(struct overlay *overlay, const char *key, size_t length, const char *uid, struct object *last);

/* Whether the store, or the watch beneath an entry, has that key. */
bool overlay_holds(const struct overlay *overlay, const char *key, size_t length);

static inline bool overlay_is_empty(const struct overlay *overlay)
{
	return !overlay->entries.count;
}

/* The key's entry; NULL, which is usual, where there is none. */
struct overlay_entry *overlay_find(const struct overlay *overlay, const char *key, size_t length);
struct object *overlay_history(const struct overlay_entry *entry); /* borrowed; NULL where the watch has none */
/* The watch has told that object (counted anew) of the entry's key, or with NULL that there is none. Returns the
 * history before, owned by the caller. The store changes with overlay_pass. */
struct object *overlay_tell(struct overlay *overlay, struct overlay_entry *entry, struct object *object);
/* The watch has told all up to that version: entries end. Nothing where it is no integer. */
void overlay_pass(struct overlay *overlay, const char *version);

/* For a relist: the store shows the history until overlay_lay. Neither calls an index function: store_file has to. */
void overlay_lift(struct overlay *overlay);
/* The list was of that version (NULL: unknown). Where it is the truth, an answer from before `truth` (clock_now's
 * scale) has nothing to add to it, whatever the versions say; 0 where it is not. */
void overlay_lay(struct overlay *overlay, const char *version, double truth);

/* Visits the histories of keys that the store does not show. False from on_object stops. */
void overlay_each_hidden(const struct overlay *overlay, store_visit_fn on_object, void *data);

void overlay_check(const struct overlay *overlay); /* asserts the invariants, in debug builds */

#endif
