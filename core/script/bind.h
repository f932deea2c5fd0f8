/* bind: what `require "perilune"` is. One C file for each part of it, each with its luaL_Reg at the foot and a row in
 * bind.c. */
#ifndef PERILUNE_SCRIPT_BIND_H
#define PERILUNE_SCRIPT_BIND_H

#include <lauxlib.h>
#include <lua.h>

#include "base/err.h"
#include "script/script.h"
#include "json/scan.h"

/* Builds the module and puts it into package.loaded.perilune. Inside call_plain. */
void bind_open(lua_State *L);

/* Each adds its names to the module's table, which is on top of the stack. */
void bind_log_open(lua_State *L);
void bind_json_open(lua_State *L);
void bind_time_open(lua_State *L);
void bind_client_open(lua_State *L);
void bind_helpers_open(lua_State *L);
void bind_http_open(lua_State *L);
void bind_metric_open(lua_State *L);
void bind_needs_open(lua_State *L);
void bind_metric_end_all(struct script *script); /* takes its metrics off the page; after its state is freed */
void bind_informer_open(lua_State *L);
void bind_factory_open(lua_State *L);
void bind_controller_open(lua_State *L);
/* Each wait_for_cache_sync under way, of factory or of all (NULL), returns with what there is. */
void bind_factory_end_waits(struct script *script, const struct script_factory *factory);
void bind_event_open(lua_State *L);
void bind_recorder_open(lua_State *L);
void bind_state_open(lua_State *L);
/* What one script's k8s.state holds passes to another's: all of it while that is being loaded, later what has changed
 * since then. -1 with err when it is no plain data. */
int bind_state_copy(struct script *from, struct script *to, struct err *err);
void bind_informer_end_all(struct script *script);      /* ends what waits for that; before its state is freed */
bool bind_index_all_filed(const struct script *script); /* its indexes hold all that was there before them */
void bind_index_end_all(struct script *script); /* takes its indexes out of the caches; before its state is freed */
void bind_string_open(lua_State *L);            /* not of that module: into the table string itself */
void bind_testing_open(lua_State *L);           /* not of that module: of specs' states, as perilune.testing.core */
void bind_service_open(lua_State *L);           /* of that one, whose table is on top of the stack */

void bind_client_push_core(lua_State *L); /* the table of what the API client is built on */
/* Adds the API client to the table at k8s, built on the table at base. Positive indexes. */
void bind_client_run(lua_State *L, int k8s, int base);

/* The err table of the API contract; causes: an array slice or .data NULL. Pushes one value. */
void bind_err_push(lua_State *L, const struct err *err, struct json_slice causes);
/* Whether the value at index is such a table; then out is filled from it. */
bool bind_err_read(lua_State *L, int index, struct err *out);

/* What a script wants decoded of an object. Shared: counted. */
struct fields;
struct fields *fields_new(const char *const *paths, size_t count, struct err *err); /* NULL: a malformed path */
struct fields *fields_ref(struct fields *fields); /* NULL is harmless here and below */
void fields_unref(struct fields *fields);

/* Pushes the object, or only its fields when they are not NULL. */
void bind_object_push(lua_State *L, const struct object *object, const struct fields *fields);

extern const char *const bind_event_names[]; /* by enum notification_type */

/* The event argument of a handler; takes references of its own. */
void bind_event_push(lua_State *L, const struct notification *notification, struct fields *fields);

/* An informer's handle for this script. factory is whose it is. */
void bind_informer_push(lua_State *L, struct script_factory *factory, int options);

/* Raises an error of misuse at the script's own line, whatever of the host's Lua called. Never returns. */
int bind_misuse(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends where the script is, "init.lua:12": its file as seen from the script's folder; "?" where it is in no frame.
 */
void bind_place(lua_State *L, struct buf *out);

/* Argument checking with errors that name the option. Tables of options are closed: an unknown name is an error with
 * the nearest known one. They are read raw. index is positive. */
void bind_check_options(lua_State *L, int index, const char *what, const char *const *known);
const char *bind_string_option(lua_State *L, int index, const char *name); /* NULL when nil; borrowed from the table */
/* One string or a list of them: borrowed from the table, in an array that stays on the stack; NULL when nil. */
const char *const *bind_strings_option(lua_State *L, int index, const char *name, size_t *count);
/* The string at index, borrowed; NULL where it is none. One with a NUL in it is misuse, as C would cut it there. */
const char *bind_text(lua_State *L, int index, const char *name);
double bind_number_option(lua_State *L, int index, const char *name, double fallback);
bool bind_bool_option(lua_State *L, int index, const char *name, bool fallback);
/* The userdata of a type made by bind_type at index 1; raises when something else is there: the dot instead of the
 * colon. */
void *bind_self(lua_State *L, const char *type, const char *name);

/* The userdata of a type made by bind_type at index; NULL when something else is there. */
void *bind_userdata(lua_State *L, int index, const char *type);

/* Registers a userdata type with these methods; other names on it are errors. gc and to_string may be NULL. */
void bind_type(lua_State *L, const char *type, const char *name, const luaL_Reg *methods, lua_CFunction gc,
	       lua_CFunction to_string);

/* nearest(word, names): the name that was meant, or nil. A lua_CFunction. */
int bind_nearest(lua_State *L);

int bind_function(lua_State *L, int index, const char *what); /* a registry reference to the function there */

/* The script, which is about to register something; misuse when it has registered too much. */
struct script *bind_registering(lua_State *L);

#endif
