/* bind_testing: what lua/perilune/testing.lua is built on: one testing cluster, and what is done with it. Specs alone
 * find it, as `require "perilune.testing.core"`. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "kube/status.h"
#include "script/bind.h"
#include "script/task.h"
#include "script/testing.h"
#include "script/value.h"

#define CLUSTER "perilune.testing.cluster"

/* What Lua holds: one cluster of the struct testing, which is dead when that has another or none. */
struct handle {
	struct testing *testing;
	unsigned generation;
	struct task *task; /* which waits for a move */
};

static bool is_open(const struct handle *handle)
{
	return handle->generation && handle->generation == testing_generation(handle->testing);
}

static struct handle *handle_of(lua_State *L)
{
	struct handle *handle = luaL_checkudata(L, 1, CLUSTER);
	if (!is_open(handle))
		bind_misuse(L, "this cluster is closed");
	return handle;
}

static int raise_err(lua_State *L, const char *what, const struct err *err)
{
	return bind_misuse(L, "%s: %s", what, err->message);
}

/* --- open and close --- */

/* open{ manifests = path or paths, quiet = boolean } */
static int l_open(lua_State *L)
{
	static const char *const options[] = {"manifests", "quiet", NULL};
	struct testing *testing = *(struct testing **)lua_touserdata(L, lua_upvalueindex(1));
	size_t count;
	struct err err;
	bind_check_options(L, 1, "cluster", options);
	const char *const *manifests = bind_strings_option(L, 1, "manifests", &count);
	bool quiet = bind_bool_option(L, 1, "quiet", false);
	struct handle *handle = lua_newuserdata(L, sizeof(*handle));
	*handle = (struct handle){.testing = testing};
	luaL_getmetatable(L, CLUSTER);
	lua_setmetatable(L, -2);
	if (testing_open(testing, manifests, quiet, &err))
		return raise_err(L, "cluster", &err);
	handle->generation = testing_generation(testing);
	return 1;
}

static int l_close(lua_State *L)
{
	struct handle *handle = luaL_checkudata(L, 1, CLUSTER);
	if (is_open(handle))
		testing_close(handle->testing);
	return 0;
}

/* --- programs --- */

/* load(cluster, path, { namespace =, settings = { "key=value" } }): the program, for kill. */
static int l_load(lua_State *L)
{
	struct handle *handle = handle_of(L);
	struct testing_load load = {.path = bind_text(L, 2, "path")};
	size_t count;
	struct err err;
	luaL_checktype(L, 3, LUA_TTABLE);
	load.namespace = bind_string_option(L, 3, "namespace");
	load.settings = bind_strings_option(L, 3, "settings", &count);
	struct testing_program *program = testing_load(handle->testing, &load, &err);
	if (!program)
		return raise_err(L, "cluster:load", &err);
	lua_pushlightuserdata(L, program);
	return 1;
}

/* kill(cluster, program): once; harmless when the cluster is closed, as its programs have ended with it. */
static int l_kill(lua_State *L)
{
	struct handle *handle = luaL_checkudata(L, 1, CLUSTER);
	if (is_open(handle))
		testing_kill(lua_touserdata(L, 2));
	return 0;
}

/* reload(cluster, program). */
static int l_reload(lua_State *L)
{
	handle_of(L);
	testing_reload(lua_touserdata(L, 2));
	return 0;
}

/* --- moving --- */

static int push_moved(lua_State *L, void *data)
{
	const struct err *err = data;
	if (!err)
		return 0;
	lua_pushstring(L, err->message);
	return 1;
}

static void on_moved(void *data, const struct err *err)
{
	struct handle *handle = data;
	struct task *task = handle->task;
	handle->task = NULL;
	task_wake(task, push_moved, (void *)err);
}

static void forget_move(void *data)
{
	struct handle *handle = data;
	handle->task = NULL;
	testing_forget_move(handle->testing);
}

/* move(cluster, what, seconds, patience): nothing, or why it did not come to its end. */
static int l_move(lua_State *L)
{
	struct handle *handle = handle_of(L);
	const char *what = luaL_checkstring(L, 2);
	double seconds = luaL_checknumber(L, 3), patience = luaL_checknumber(L, 4);
	if (testing_is_moving(handle->testing))
		return bind_misuse(L, "%s: another coroutine moves this cluster's time already", what);
	struct task *task = task_current(L, what);
	handle->task = task;
	testing_move(handle->testing, seconds, patience, on_moved, handle);
	return task_wait(L, task, forget_move, handle);
}

/* --- the sandbox --- */

static struct json_slice ask(lua_State *L, const char *name, int index)
{
	struct handle *handle = handle_of(L);
	struct buf *question = &state_of(L)->scratch;
	struct json_slice answer;
	struct err err;
	buf_reset(question);
	if (value_encode(L, index, question, &err))
		bind_misuse(L, "this can't be sent: %s", err.message);
	if (testing_ask(handle->testing, name, (struct json_slice){question->data, question->length}, &answer, &err))
		bind_misuse(L, "%s", err.message);
	return answer;
}

/* ask(cluster, name, value): what the function of sandbox/questions.lua returned, decoded. */
static int l_ask(lua_State *L)
{
	struct json_slice answer = ask(L, luaL_checkstring(L, 2), 3);
	if (!answer.data)
		return 0;
	value_push(L, answer);
	return 1;
}

static int push_failure(lua_State *L, int status, struct json_slice body)
{
	struct buf copy;
	struct err err;
	buf_init(&copy, 0);
	buf_append(&copy, body.data, body.length);
	struct http_result result = {.head = {.status = status, .retry_after = -1}, .body = &copy};
	status_of_result(&result, true, &err);
	buf_fini(&copy);
	lua_pushnil(L);
	bind_err_push(L, &err, status_causes(body));
	return 2;
}

/* request(cluster, call): one API call, as client.lua's core.request takes it; value, or nil and err. */
static int l_request(lua_State *L)
{
	struct json_slice answer = ask(L, "call", 2);
	size_t head = strcspn(answer.data, " ") + 1;
	struct json_slice body = {answer.data + head, answer.length - head};
	int status = atoi(answer.data);
	if (status >= 300)
		return push_failure(L, status, body);
	value_push(L, body);
	return 1;
}

/* --- the rest --- */

/* logs(cluster): an array of what was logged since it was opened. */
static int l_logs(lua_State *L)
{
	value_push(L, testing_logs(handle_of(L)->testing));
	return 1;
}

/* client(functions, core) fills functions with the API calls. */
static int l_client(lua_State *L)
{
	lua_settop(L, 2);
	bind_client_run(L, 1, 2);
	return 0;
}

static const luaL_Reg functions[] = {
    {"open", l_open},       {"close", l_close},   {"logs", l_logs},          {"load", l_load},
    {"kill", l_kill},       {"reload", l_reload}, {"move", l_move},          {"ask", l_ask},
    {"request", l_request}, {"client", l_client}, {"nearest", bind_nearest}, {NULL, NULL}};

static int l_free(lua_State *L)
{
	testing_free(*(struct testing **)lua_touserdata(L, 1));
	return 0;
}

/* A userdata that ends with the state; open's upvalue. */
static void push_testing(lua_State *L)
{
	struct testing **testing = lua_newuserdata(L, sizeof(struct testing *));
	*testing = testing_new(state_of(L)->host);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, l_free);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
}

void bind_testing_open(lua_State *L)
{
	static const luaL_Reg no_methods[] = {{NULL, NULL}};
	bind_type(L, CLUSTER, "a testing cluster", no_methods, NULL, NULL);
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	bind_client_push_core(L);
	luaL_register(L, NULL, functions);
	bind_service_open(L);
	push_testing(L);
	lua_pushcclosure(L, l_open, 1);
	lua_setfield(L, -2, "open");
	lua_setfield(L, -2, "perilune.testing.core");
	lua_pop(L, 1);
}
