/* bind_factory: k8s.factory and its start, wait_for_cache_sync and shutdown. */
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/barrier.h"
#include "script/bind_informer.h"
#include "script/hook.h"
#include "script/host_private.h"
#include "script/task.h"
#include "script/value.h"

#define FACTORY_TYPE "perilune.factory"

ALLOC_TYPE(wait_type, "cache sync wait");

/* Of a wait that is given no time, in seconds: what has not synced by then is not waited for. */
#define AT_ONCE 0.001
#define FOREVER 1e14

static struct script_factory *check_factory(lua_State *L)
{
	return *(struct script_factory **)bind_self(L, FACTORY_TYPE, "factory");
}

/* --- making --- */

static int l_factory(lua_State *L)
{
	lua_settop(L, 1);
	if (lua_isnil(L, 1)) {
		lua_newtable(L);
		lua_replace(L, 1);
	}
	struct script *script = bind_registering(L);
	struct script_factory **place = lua_newuserdata(L, sizeof(struct script_factory *));
	luaL_getmetatable(L, FACTORY_TYPE);
	lua_setmetatable(L, -2);
	int defaults = bind_defaults_new(L, 1);
	*place = script_factory_new(script);
	(*place)->defaults = defaults;
	return 1;
}

static int l_informer(lua_State *L)
{
	struct script_factory *factory = check_factory(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	bind_informer_push(L, factory, 2);
	return 1;
}

/* --- start and shutdown --- */

static void need_cluster(lua_State *L)
{
	struct host *host = state_of(L)->host;
	if (!host_cluster(host))
		bind_misuse(L, "factory:start: %s", host_get_options(host)->no_config.message);
}

static int l_start(lua_State *L)
{
	struct script_factory *factory = check_factory(L);
	hook_refuse(L, "factory:start");
	struct script *script = script_of(L);
	if (!script->started) /* at top level: the host starts it when all scripts have loaded */
		return 0;
	need_cluster(L);
	script_factory_start(factory);
	return 0;
}

static int l_shutdown(lua_State *L)
{
	struct script_factory *factory = check_factory(L);
	hook_refuse(L, "factory:shutdown");
	script_factory_shutdown(factory);
	return 0;
}

/* --- wait_for_cache_sync --- */

struct wait {
	struct list node; /* in script->waits */
	struct task *task;
	struct script_factory *factory;
	struct barrier *barrier;
	struct loop_job end; /* given up: the script is told what there is */
};

static void free_wait(void *data)
{
	struct wait *wait = data;
	list_remove(&wait->node);
	loop_job_cancel(&wait->end);
	barrier_free(wait->barrier);
	alloc_object_free(&wait_type, wait);
}

static void push_report(lua_State *L, const struct informer *informer)
{
	struct informer_report report;
	informer_report(informer, &report);
	lua_createtable(L, 0, 9);
	lua_pushstring(L, report.api_version);
	lua_setfield(L, -2, "apiVersion");
	lua_pushstring(L, report.kind);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, report.namespace);
	lua_setfield(L, -2, "namespace");
	lua_pushboolean(L, report.synced);
	lua_setfield(L, -2, "synced");
	lua_pushstring(L, report.state);
	lua_setfield(L, -2, "state");
	lua_pushinteger(L, (lua_Integer)report.objects);
	lua_setfield(L, -2, "objects");
	lua_pushinteger(L, (lua_Integer)report.attempts);
	lua_setfield(L, -2, "attempts");
	if (report.status) {
		lua_pushinteger(L, report.status);
		lua_setfield(L, -2, "status");
	}
	lua_pushstring(L, report.message);
	lua_setfield(L, -2, "message");
}

struct reports {
	lua_State *L;
	const struct barrier *barrier;
};

/* Those that were waited for; others may have been started meanwhile. */
static void push_informer(void *data, struct informer *informer)
{
	const struct reports *reports = data;
	if (!barrier_holds(reports->barrier, informer))
		return;
	push_report(reports->L, informer);
	lua_rawseti(reports->L, -2, (int)lua_objlen(reports->L, -2) + 1);
}

static void push_reason(lua_State *L, const struct barrier *barrier, bool ended)
{
	struct buf *scratch = &state_of(L)->scratch;
	buf_reset(scratch);
	if (ended)
		buf_append_format(scratch, "the factory has been shut down%s", barrier_is_open(barrier) ? "" : ": ");
	barrier_late(barrier, scratch);
	lua_pushlstring(L, buf_text(scratch), scratch->length);
}

static int push_result(lua_State *L, void *data)
{
	struct wait *wait = data;
	bool ended = factory_is_shut_down(wait->factory->factory);
	bool open = barrier_is_open(wait->barrier) && !ended;
	lua_createtable(L, 0, 3);
	lua_pushboolean(L, open);
	lua_setfield(L, -2, "synced");
	if (!open) {
		push_reason(L, wait->barrier, ended);
		lua_setfield(L, -2, "err");
	}
	lua_newtable(L);
	struct reports reports = {L, wait->barrier};
	if (!factory_is_shut_down(wait->factory->factory))
		factory_each(wait->factory->factory, push_informer, &reports);
	value_mark_array(L, -1);
	lua_setfield(L, -2, "informers");
	return 1;
}

/* Nothing else may end the wait while the script, which reads it in push_result, goes on. */
static void run_end(void *data)
{
	struct wait *wait = data;
	list_remove(&wait->node);
	loop_job_cancel(&wait->end);
	task_wake(wait->task, push_result, wait);
	free_wait(wait);
}

static void on_done(void *data, enum barrier_outcome outcome)
{
	(void)outcome;
	run_end(data);
}

void bind_factory_end_waits(struct script *script, const struct script_factory *factory)
{
	LIST_EACH (&script->waits, node) {
		struct wait *wait = LIST_ENTRY(node, struct wait, node);
		if (!factory || wait->factory == factory)
			loop_post(script->loop, &wait->end);
	}
}

static int l_wait_for_cache_sync(lua_State *L)
{
	static const char *const known[] = {"timeout", NULL};
	struct script_factory *factory = check_factory(L);
	double timeout = 0; /* the barrier's word for no limit */
	bool limited = false;
	if (!lua_isnoneornil(L, 2)) {
		bind_check_options(L, 2, "wait_for_cache_sync", known);
		timeout = bind_number_option(L, 2, "timeout", FOREVER);
		limited = timeout < FOREVER;
		timeout = limited ? timeout : 0;
	}
	struct task *task = task_current(L, "factory:wait_for_cache_sync");
	struct wait *wait = alloc_object(&wait_type, sizeof(*wait));
	wait->task = task;
	wait->factory = factory;
	loop_job_init(&wait->end, run_end, wait);
	list_add_tail(&factory->script->waits, &wait->node);
	if (factory->script->ending || (timeout == 0 && limited))
		timeout = AT_ONCE;
	struct barrier_options options = {.timeout = timeout, .on_done = on_done, .data = wait};
	wait->barrier = barrier_new(factory->script->loop, &options);
	if (!factory_is_shut_down(factory->factory))
		factory_add_to_barrier(factory->factory, wait->barrier);
	barrier_start(wait->barrier);
	return task_wait(L, task, free_wait, wait);
}

static const luaL_Reg methods[] = {{"informer", l_informer},
				   {"start", l_start},
				   {"shutdown", l_shutdown},
				   {"wait_for_cache_sync", l_wait_for_cache_sync},
				   {NULL, NULL}};

void bind_factory_open(lua_State *L)
{
	bind_type(L, FACTORY_TYPE, "factory", methods, NULL, NULL);
	lua_pushcfunction(L, l_factory);
	lua_setfield(L, -2, "factory");
}
