/* bind_time: k8s.sleep, now, every, main, on_synced and on_shutdown. */
#include <lauxlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "script/bind.h"
#include "script/task.h"

#define SHORTEST_INTERVAL 0.001 /* seconds: a shorter one would only take the processor */

ALLOC_TYPE(sleep_type, "sleep");

struct sleep {
	struct task *task;
	struct loop *loop;
	struct loop_timer timer;
};

static void free_sleep(void *data)
{
	struct sleep *sleep = data;
	loop_timer_stop(sleep->loop, &sleep->timer);
	alloc_object_free(&sleep_type, sleep);
}

static int push_nothing(lua_State *L, void *data)
{
	(void)L, (void)data;
	return 0;
}

static void on_awake(void *data)
{
	struct task *task = ((struct sleep *)data)->task;
	free_sleep(data);
	task_wake(task, push_nothing, NULL);
}

static int l_sleep(lua_State *L)
{
	double seconds = luaL_checknumber(L, 1);
	if (!(seconds >= 0 && seconds < 1e9))
		return bind_misuse(L, "k8s.sleep takes seconds, from 0 on");
	if (clock_is_stopped() && script_of(L)->specs)
		return bind_misuse(L, "time stands still while a testing cluster is open: cluster:advance(%f) moves it",
				   seconds);
	struct task *task = task_current(L, "k8s.sleep");
	struct sleep *sleep = alloc_object(&sleep_type, sizeof(*sleep));
	sleep->task = task;
	sleep->loop = script_of(L)->loop;
	loop_timer_init(&sleep->timer, on_awake, sleep);
	loop_timer_start(sleep->loop, &sleep->timer, seconds);
	return task_wait(L, task, free_sleep, sleep);
}

static int l_now(lua_State *L)
{
	lua_pushnumber(L, clock_wall());
	return 1;
}

static int l_every(lua_State *L)
{
	static const char *const known[] = {"leader", NULL};
	double interval = luaL_checknumber(L, 1);
	if (!(interval >= SHORTEST_INTERVAL && interval < 1e9))
		return bind_misuse(L, "k8s.every takes seconds, %f at least", SHORTEST_INTERVAL);
	bool leader = false;
	if (!lua_isnoneornil(L, 3)) {
		bind_check_options(L, 3, "k8s.every", known);
		leader = bind_bool_option(L, 3, "leader", false);
	}
	struct script *script = bind_registering(L);
	script_add_call(script, &script->timers, bind_function(L, 2, "k8s.every"), interval, leader);
	return 0;
}

static int l_on_synced(lua_State *L)
{
	struct script *script = bind_registering(L);
	script_add_call(script, &script->on_synced, bind_function(L, 1, "k8s.on_synced"), 0, false);
	return 0;
}

static int l_on_shutdown(lua_State *L)
{
	struct script *script = bind_registering(L);
	script_add_call(script, &script->on_shutdown, bind_function(L, 1, "k8s.on_shutdown"), 0, false);
	return 0;
}

static int l_main(lua_State *L)
{
	struct script *script = bind_registering(L);
	if (script->started)
		return bind_misuse(L, "k8s.main belongs at the top level of the script");
	script_add_call(script, &script->mains, bind_function(L, 1, "k8s.main"), 0, false);
	return 0;
}

static const luaL_Reg functions[] = {{"sleep", l_sleep},
				     {"now", l_now},
				     {"every", l_every},
				     {"main", l_main},
				     {"on_synced", l_on_synced},
				     {"on_shutdown", l_on_shutdown},
				     {NULL, NULL}};

void bind_time_open(lua_State *L)
{
	luaL_register(L, NULL, functions);
}
