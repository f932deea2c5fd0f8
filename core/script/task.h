/* task: one coroutine of a script that may wait for the host: a handler's call, a reconcile, k8s.main.
 *
 * A binding that must wait starts its work with the task as its data and returns task_wait(...), which yields the
 * coroutine to the loop, through any coroutines of the script's own (guard.lua passes it up). Later, from the loop,
 * task_wake resumes it with results. */
#ifndef PERILUNE_SCRIPT_TASK_H
#define PERILUNE_SCRIPT_TASK_H

#include "script/state.h"

struct task;
struct work;

/* Pushes onto L, protected, and returns how many: for a start the function first (not counted) and its arguments; for a
 * wake the results. TASK_MOST_PUSHED values at most: so many a coroutine that is suspended has room for, however full
 * its stack is (LuaJIT keeps 5 beyond what it gives). It takes no C resource. */
#define TASK_MOST_PUSHED 4
typedef int (*task_push_fn)(lua_State *L, void *data);

struct task_options {
	task_push_fn push;
	/* err NULL when the coroutine returned. Called once from the loop, or inside task_start when it ended at once.
	 * The task is dead after it. May be NULL. */
	void (*on_end)(void *data, const struct err *err);
	/* Reads the coroutine's results, the top count values of L, protected, before on_end; may be NULL. A non-zero
	 * return is a failure with err filled. */
	int (*on_results)(lua_State *L, int count, void *data, struct err *err);
	void *data;               /* of all three */
	const char *what, *place; /* as state->doing and doing_at; borrowed until on_end */
	struct work *work;        /* the reconcile that this is; NULL elsewhere */
	bool leader;              /* its API calls begin only while this host is the leader */
};

/* NULL when it ended within the call (on_end has been called then); else the task, borrowed until on_end. */
struct task *task_start(struct state *state, const struct task_options *options);

/* The task that runs now on L; raises a clear error, naming what, where the host can't wait (top level, transform,
 * table.sort …). */
struct task *task_current(lua_State *L, const char *what);

struct work *task_work(const struct task *task);      /* as in its options */
const char *task_controller(const struct task *task); /* the name of that one's controller; NULL elsewhere */
bool task_is_leader(const struct task *task);         /* the same */

/* Marks the running task as waiting: return its value from the lua_CFunction. on_cancel ends the work that was started,
 * calls no Lua, and after it task_wake must not come. */
int task_wait(lua_State *L, struct task *task, void (*on_cancel)(void *data), void *data);

/* Pushes what guard.lua needs, two values: what a waiting coroutine yields; and the table in which it notes, as
 * coroutine to true, those that were resumed where Lua can't yield, so that they can't wait either. Once a state. */
void task_push_guard(lua_State *L);

/* Resumes a waiting task with what push puts on the stack. */
void task_wake(struct task *task, task_push_fn push, void *data);

/* Ends a waiting task: its work is cancelled, its coroutine dropped and on_end told with "cancelled". */
void task_cancel(struct task *task);
void task_cancel_all(struct state *state);

#endif
