#include "script/task.h"

#include <lauxlib.h>

#include "base/alloc.h"
#include "script/bind.h"
#include "script/call.h"
#include "work/controller.h"

ALLOC_TYPE(task_type, "task");

struct task {
	struct list node; /* in state->tasks */
	struct state *state;
	struct task_options options;
	lua_State *thread;
	int reference; /* keeps thread alive, in the registry */
	bool waiting;
	void (*on_cancel)(void *data);
	void *cancel_data;
};

/* One entry that makes or continues a coroutine. */
struct step {
	struct task *task;
	task_push_fn push;
	void *data;
	bool yielded;
	struct err *err;
};

/* What a waiting host call yields. Scripts can't make one: guard.lua never shows it to them. */
static char wait_mark;

/* Registry key of the table of coroutines that were resumed where Lua can't yield. */
static char blocked_key;

void task_push_guard(lua_State *L)
{
	lua_pushlightuserdata(L, &wait_mark);
	lua_pushlightuserdata(L, &blocked_key);
	lua_newtable(L);
	lua_pushvalue(L, -1);
	lua_insert(L, -3);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

static bool is_blocked(lua_State *L)
{
	lua_pushlightuserdata(L, &blocked_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	lua_pushthread(L);
	lua_rawget(L, -2);
	bool blocked = lua_toboolean(L, -1);
	lua_pop(L, 2);
	return blocked;
}

/* A coroutine that returned can run another function: a handler that waits for nothing makes no garbage. */
static void make_thread(lua_State *L, struct task *task)
{
	struct state *state = task->state;
	if (state->spare) {
		task->thread = state->spare;
		task->reference = state->spare_reference;
		state->spare = NULL;
		return;
	}
	task->thread = lua_newthread(L);
	task->reference = state_ref(L);
}

/* At once when it failed, so that the collection after an entry that ran out of memory frees what it held. */
static void forget_thread(lua_State *L, struct task *task)
{
	luaL_unref(L, LUA_REGISTRYINDEX, task->reference);
	task->thread = NULL;
}

static int after_yield(struct step *step)
{
	lua_State *thread = step->task->thread;
	step->yielded = lua_gettop(thread) >= 1 && lua_touserdata(thread, 1) == &wait_mark && step->task->waiting;
	lua_settop(thread, 0);
	if (step->yielded)
		return 0;
	return err_set(step->err, "", "coroutine.yield outside of a coroutine of the script's own");
}

/* Everything that may raise happens on L, which the protected call covers; the coroutine's own stack is not covered
 * before it runs, so values are only moved there, and not even room for them is asked for. */
static int push_onto(lua_State *L, lua_State *thread, struct step *step)
{
	int base = lua_gettop(L);
	int arguments = step->push(L, step->data);
	int count = lua_gettop(L) - base;
	if (count > TASK_MOST_PUSHED)
		luaL_error(L, "%d values for a coroutine", count);
	lua_xmove(L, thread, count);
	return arguments;
}

static int take_results(lua_State *L, lua_State *thread, struct step *step)
{
	int count = lua_gettop(thread);
	luaL_checkstack(L, count + LUA_MINSTACK, "too many results");
	lua_xmove(thread, L, count);
	struct task_options *options = &step->task->options;
	return options->on_results ? options->on_results(L, count, options->data, step->err) : 0;
}

static int run(lua_State *L, void *data)
{
	struct step *step = data;
	struct task *task = step->task;
	if (!task->thread)
		make_thread(L, task);
	int status = lua_resume(task->thread, push_onto(L, task->thread, step));
	if (status == 0)
		return take_results(L, task->thread, step);
	if (status == LUA_YIELD)
		return after_yield(step);
	call_error(L, task->thread, status, step->err);
	forget_thread(L, task);
	return -1;
}

static int release_thread(lua_State *L, void *data)
{
	luaL_unref(L, LUA_REGISTRYINDEX, *(int *)data);
	return 0;
}

static void drop_thread(struct task *task, bool returned)
{
	struct state *state = task->state;
	if (returned && !state->spare) {
		lua_settop(task->thread, 0);
		state->spare = task->thread;
		state->spare_reference = task->reference;
	} else if (task->thread) {
		call_plain(state, release_thread, &task->reference, NULL);
	}
}

static void end(struct task *task, const struct err *err)
{
	struct task_options options = task->options;
	list_remove(&task->node);
	drop_thread(task, !err);
	alloc_object_free(&task_type, task);
	if (options.on_end)
		options.on_end(options.data, err);
}

/* Ends what the task waits for: nobody is there to be woken. */
static void give_up(struct task *task)
{
	if (!task->waiting)
		return;
	task->waiting = false;
	task->on_cancel(task->cancel_data);
}

/* Returns whether the task goes on. */
static bool advance(struct task *task, task_push_fn push, void *data)
{
	struct state *state = task->state;
	struct err err;
	struct step step = {task, push, data, false, &err};
	struct task *outer = state->running;
	state->running = task;
	state->doing = task->options.what;
	state->doing_at = task->options.place;
	int result = state->parked ? err_set(&err, "", "the script is parked: %s", state->parked)
				   : call_plain(state, run, &step, &err);
	state->running = outer;
	state->doing = state->doing_at = NULL;
	if (result == 0 && step.yielded)
		return true;
	give_up(task); /* it was stopped, or failed, after the wait had begun */
	end(task, result == 0 ? NULL : &err);
	return false;
}

struct task *task_start(struct state *state, const struct task_options *options)
{
	struct task *task = alloc_object(&task_type, sizeof(*task));
	task->state = state;
	task->options = *options;
	list_add_tail(&state->tasks, &task->node);
	return advance(task, options->push, options->data) ? task : NULL;
}

struct task *task_current(lua_State *L, const char *what)
{
	struct task *task = state_of(L)->running;
	if (state_of(L)->hook)
		bind_misuse(L, "%s waits for the host, which does not work inside the script's %s", what,
			    state_of(L)->hook);
	if (!task)
		bind_misuse(L,
			    "%s waits for the host, which works only in handlers, reconcile functions, k8s.main, "
			    "k8s.every and the like",
			    what);
	if (!lua_isyieldable(L) || is_blocked(L))
		bind_misuse(L,
			    "%s waits for the host, which does not work inside table.sort, string.gsub, require and "
			    "other C functions",
			    what);
	give_up(task); /* a call before this one could not yield, as its stack was full */
	return task;
}

struct work *task_work(const struct task *task)
{
	return task->options.work;
}

const char *task_controller(const struct task *task)
{
	return task->options.work ? controller_name(task->options.work->controller) : NULL;
}

bool task_is_leader(const struct task *task)
{
	return task->options.leader;
}

int task_wait(lua_State *L, struct task *task, void (*on_cancel)(void *data), void *data)
{
	task->waiting = true;
	task->on_cancel = on_cancel;
	task->cancel_data = data;
	lua_settop(L, 0);
	lua_pushlightuserdata(L, &wait_mark);
	return lua_yield(L, 1);
}

void task_wake(struct task *task, task_push_fn push, void *data)
{
	task->waiting = false;
	advance(task, push, data);
}

void task_cancel(struct task *task)
{
	struct err err;
	err_set(&err, "", "cancelled");
	give_up(task);
	end(task, &err);
}

void task_cancel_all(struct state *state)
{
	struct list *node;
	while ((node = state->tasks.next) != &state->tasks)
		task_cancel(LIST_ENTRY(node, struct task, node));
}
