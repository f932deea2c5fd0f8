/* store: key to object, with a namespace index and any number of named indexes. Passive: no I/O, no callbacks but index
 * functions.
 *
 * Iteration follows the order in which keys first came. The cost of put and remove does not grow with the number of
 * objects. */
#ifndef PERILUNE_CACHE_STORE_H
#define PERILUNE_CACHE_STORE_H

#include <stdbool.h>

#include "cache/object.h"

struct store;
struct store *store_new(void);
void store_free(struct store *store);
/* Frees it in turns, each until that time on clock_now's scale, and true when it is freed. It is used for nothing else
 * from the first on. */
bool store_free_some(struct store *store, double until);

struct object *store_get(const struct store *store, const char *namespace,
			 const char *name); /* borrowed; NULL when absent */
struct object *store_get_key(const struct store *store, const char *key, size_t length);
/* Takes a reference of its own. Returns the object that was there before, owned by the caller, or NULL. */
struct object *store_put(struct store *store, struct object *object);
/* The same, but indexes learn of it in store_file. It calls no index function. */
struct object *store_put_unfiled(struct store *store, struct object *object);
struct object *store_remove(struct store *store, const char *key,
			    size_t length); /* owned by the caller; NULL when absent */

/* For a relist: what is put, or found by store_touch, since store_begin_round belongs to the round. */
void store_begin_round(struct store *store);
struct object *store_touch(struct store *store, const char *key, size_t length); /* as store_get_key */

size_t store_count(const struct store *store);
size_t store_bytes(const struct store *store); /* of the objects' JSON, however it is held */

/* What an index files an object under: calls emit for each value. */
typedef void (*store_emit_fn)(void *emit_data, const char *value, size_t length);
struct store_index_fn {
	void (*values)(void *data, struct object *object, store_emit_fn emit, void *emit_data);
	void (*free)(void *data); /* may be NULL */
	void *data;
	const void *owner; /* for store_remove_owned; NULL: the store's own */
};
/* An index over a path (taken): a string, number or bool at it is the value, unescaped; each of several with [*]. */
struct store_index_fn store_path_index(struct json_path *path);

/* What comes is filed from now on; what is there with store_file_index, or when the index is first asked. -1 when the
 * name is taken: then fn is not. */
int store_add_index(struct store *store, const char *name, struct store_index_fn fn);
/* Files what was there when the index came, until that time on clock_now's scale. True when all of it is. */
bool store_file_index(struct store *store, const char *name, double until);
/* Files what was put unfiled, until that time; true when all of it is, and inside an index function, where it files
 * nothing. An index that is asked has it done first, but not there. */
bool store_file(struct store *store, double until);
void store_remove_index(struct store *store, const char *name);
void store_remove_owned(struct store *store, const void *owner); /* all indexes of that owner */
/* From a store that holds no object; an index whose name is taken there is freed. */
void store_move_indexes(struct store *from, struct store *to);
bool store_has_index(const struct store *store, const char *name);

/* Iterations; the store must not change meanwhile. namespace NULL: all. False from on_object stops. */
typedef bool (*store_visit_fn)(void *data, struct object *object);
void store_each(const struct store *store, const char *namespace, store_visit_fn on_object, void *data);
void store_each_index(struct store *store, const char *index, const char *value, size_t length,
		      store_visit_fn on_object, void *data);

/* In parts, in no particular order: from *place (0 at first) on, through so many places. True when none is left, and
 * when on_object stops. The store may change between the parts: what comes meanwhile may be passed by. */
bool store_walk(const struct store *store, uint32_t *place, uint32_t places, store_visit_fn on_object, void *data);

/* As store_each, one by one: in order, and the store must not change meanwhile. */
struct store_cursor {
	uint32_t next; /* 0 at the end */
	bool in_space;
};
struct store_cursor store_begin(const struct store *store, const char *namespace);
/* Borrowed; NULL at the end. missed: whether it does not belong to the round; may be NULL. */
struct object *store_next(const struct store *store, struct store_cursor *cursor, bool *missed);

void store_check(const struct store *store); /* asserts the invariants, in debug builds */

#endif
