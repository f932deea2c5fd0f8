/* hook: a function of a script that the host calls in the middle of work of its own: a transform, a filter, an index
 * function, a predicate, a map. One result out.
 *
 * A plain call: it can't wait, and what would change the host under its feet (registering, starting, shutting down) is
 * refused while it runs. An error is the caller's to answer: it goes on without a result, and says hook_failed. */
#ifndef PERILUNE_SCRIPT_HOOK_H
#define PERILUNE_SCRIPT_HOOK_H

#include "script/script.h"

struct hook;
extern const char *const hook_names[HOOK_KINDS];

/* Of the function at index. Raises when the state's memory is out. */
struct hook *hook_new(lua_State *L, int index, enum hook_kind kind);
void hook_free(struct hook *hook); /* also from inside Lua, and when the script has ended; NULL is harmless */

/* "init.lua:12", where the function begins: its result has no line of its own. Borrowed. */
const char *hook_place(const struct hook *hook);

struct hook_call {
	int (*push)(lua_State *L, void *data); /* the arguments, which it counts; may raise */
	/* What came back, at index; may raise. 0, or -1 with err, which hook_call then completes with the place of the
	 * function. */
	int (*read)(lua_State *L, int index, void *data, struct err *err);
	void *data;
};
/* 0, or -1 with err. */
int hook_call(struct hook *hook, const struct hook_call *call, struct err *err);

/* Logs and counts an error of the function, or of what became of its result. */
void hook_failed(const struct hook *hook, const struct err *err, const struct informer *informer,
		 const struct object *object);

/* Misuse where such a function is running. what: "factory:shutdown". */
void hook_refuse(lua_State *L, const char *what);

/* The script ends: its hooks fail from now on. Before its state is freed. */
void hook_end_all(struct script *script);

#endif
