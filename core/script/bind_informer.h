/* bind_informer: a script's handle on an informer, shared by the files that hold its methods. */
#ifndef PERILUNE_SCRIPT_BIND_INFORMER_H
#define PERILUNE_SCRIPT_BIND_INFORMER_H

#include "script/bind.h"

struct handle {
	struct script_factory *factory;
	struct informer *informer; /* counted */
	double resync;             /* the default of its handlers */
	bool warned;               /* that it was read before it had synced */
};

/* The handle at index 1; raises when something else is there. */
struct handle *bind_informer_self(lua_State *L);
/* That at index; NULL when something else is there. */
struct handle *bind_informer_at(lua_State *L, int index);

/* Pushes the option `transform`. True for a function, false for none. */
bool bind_informer_push_transform(lua_State *L, int options);
/* The option `resync`, in seconds. what: begins the error. */
double bind_resync_option(lua_State *L, int options, const char *what, double fallback);

/* bind_defaults.c */
int bind_defaults_new(lua_State *L, int options); /* of k8s.factory's options; a registry reference */
/* Replaces the table at options by one that has, beside what that says, the defaults of its kind and of the factory. */
void bind_defaults_add(lua_State *L, int reference, int options);

/* bind_transform.c */
struct transforming;
/* Of the function at index; counted for the caller. What it makes is out's to be told whose informer it serves. */
struct transform *bind_transform_new(lua_State *L, int index, struct transforming **out);
void bind_transform_serve(struct transforming *transforming, struct informer *informer);

/* bind_index.c: indexes. They are the script's own, and of the informer as it asked for it: the store, which others may
 * share, knows them under both. */
/* The name that the store knows it by; borrowed from the state's scratch. */
const char *bind_index_name(lua_State *L, const struct handle *handle, const char *name);
/* Pushes the option `index`. False when it is nil. */
bool bind_index_push(lua_State *L, int options);
/* Adds the indexes of the table at index. */
void bind_index_add(lua_State *L, int index, const struct handle *handle);
int bind_index_method(lua_State *L); /* informer:add_index */

/* bind_cache.c: reading. */
int bind_cache_get(lua_State *L);
int bind_cache_list(lua_State *L);
int bind_cache_keys(lua_State *L);
int bind_cache_count(lua_State *L);

/* bind_handler.c: add_event_handler, and the registration that it returns. */
int bind_handler_add(lua_State *L);
void bind_handler_open(lua_State *L);

#endif
