/* index: one named index of a store. Objects and what they were filed under in; those of one value out.
 *
 * A posting joins one entry of the store and one value. It stands in two lists: the value's (in the order filed) and
 * the entry's. So an update costs as much as the object has values, before and after, however many others share them.
 */
#ifndef PERILUNE_CACHE_INDEX_H
#define PERILUNE_CACHE_INDEX_H

#include "base/list.h"
#include "cache/keymap.h"
#include "cache/store.h"

struct index {
	struct list node; /* the store's list */
	char *name;
	struct store_index_fn fn;
	struct keymap values; /* struct index_value; none is empty */
	uint32_t unfiled;     /* the store's entry from which on those may not be filed; 0 when all are */
};

struct index_value {
	struct list postings;
	struct posting *current; /* the posting of the entry that index_update is at; NULL outside of it */
	size_t length;
	char text[];
};

struct posting {
	struct list in_value;
	struct posting *next; /* of the same entry, whichever the index */
	struct index *index;
	struct index_value *value;
	void *entry;
	bool seen; /* by index_update; false outside of it */
};

struct index *index_new(const char *name, struct store_index_fn fn);
void index_free(struct index *index); /* no posting may be left */

/* Files the entry under what fn says of object now. *postings is the entry's list, over all indexes. */
void index_update(struct index *index, void *entry, struct object *object, struct posting **postings);
/* Takes the entry's postings of index out; of every index when NULL. */
void index_clear(struct index *index, struct posting **postings);

const struct index_value *index_find(const struct index *index, const char *value, size_t length); /* NULL when none */

#endif
