/* state: one lua_State with its limits: a script's own world, or the full-library one that specs run in.
 *
 * Memory: every byte goes through a counting allocator. An allocation beyond `memory_limit` fails and stops the
 * present entry, which no pcall of the script can catch; past three quarters of it a full collection follows the entry.
 * Time: limit.c. Nothing but call.c enters it.
 *
 * A state is parked when a full collection after such an entry leaves it over three quarters, or when STATE_STOPS
 * entries were stopped within STATE_WINDOW seconds: then task.c and hook.c call nothing of the script any more. */
#ifndef PERILUNE_SCRIPT_STATE_H
#define PERILUNE_SCRIPT_STATE_H

#include <lua.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "script/collector.h"

struct host;
struct task;

struct state_options {
	const char *name;    /* for logs; borrowed for the call */
	struct host *host;   /* borrowed; NULL in specs of this file alone */
	size_t memory_limit; /* bytes; 0: none */
	double time_limit;   /* seconds between yields; 0: none */
	bool jit;
	bool silent;       /* one without time_limit that may run long: nobody is told */
	bool full_library; /* no whitelist: ffi, io, debug, os and any module on package.path */
};

#define STATE_STOPS 3
#define STATE_WINDOW 60.0

#define STATE_KEPT ((size_t)8 << 20) /* the least of kept_most */

enum state_kill { KILL_NONE, KILL_TIME, KILL_MEMORY };

struct state {
	lua_State *L;
	char *name;
	struct host *host;    /* as in the options */
	void *owner;          /* the script; borrowed */
	struct list tasks;    /* all that have not ended */
	struct task *running; /* the one whose coroutine runs now; NULL in plain calls */
	/* What the present entry is, for whoever asks why it takes so long, as stall.h has it; NULL: unknown. */
	const char *doing, *doing_at;
	const char *hook;    /* what the function is that hook.c runs now: "transform"; NULL while it runs none */
	lua_State *inside;   /* set by a binding that calls hooks within its own entry: its L */
	lua_State *spare;    /* a coroutine that has returned, for the next task; or NULL */
	int spare_reference; /* its place in the registry */
	struct buf scratch;  /* for whoever needs bytes within one call; may hold anything after it */
	struct buf decoding; /* value.c's own, which may decode from scratch */

	struct collector collector;
	size_t memory, memory_limit;
	size_t kept, kept_most; /* bytes of the cache's objects that only events hold, and how many call a collection */
	lua_Alloc allocate;     /* LuaJIT's own */
	void *allocate_data;

	double time_limit;
	volatile sig_atomic_t killed; /* enum state_kill: the present entry is being stopped */
	char seen_at[128];            /* file:line where the hook of limit.c met it */

	unsigned long stops[3];         /* entries into it, by how they were stopped: enum state_kill */
	double stopped_at[STATE_STOPS]; /* the last ones, the latest first; clock_now's scale */
	bool full_library, silent;
	char *parked; /* why nothing of the script is called any more; NULL: it is */
};

/* NULL with err when a limit is too small to even open the libraries. Calls no script code. */
struct state *state_new(const struct state_options *options, struct err *err);
void state_free(struct state *state); /* cancels its tasks first */
struct state *state_of(lua_State *L);

/* luaL_ref into the registry, beyond the memory limit where need be: LuaJIT loses entries of a table whose growth is
 * refused half-way, and these are the host's. */
int state_ref(lua_State *L);

#endif
