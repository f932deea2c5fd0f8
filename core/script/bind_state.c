/* bind_state: k8s.state, and how it passes from one generation of a script to the next, with lua/perilune/state.lua. */
#include <lauxlib.h>

#include "base/alloc.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/library.h"
#include "script/value.h"

static char core_key; /* registry key of what state.lua gives: take and state */

static void push_core(lua_State *L, const char *name)
{
	lua_pushlightuserdata(L, &core_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	lua_getfield(L, -1, name);
}

struct passage {
	struct buf json;
	bool first; /* the script is being loaded */
	struct err *err;
};

static int save(lua_State *L, void *data)
{
	struct passage *passage = data;
	push_core(L, "state");
	return value_encode(L, lua_gettop(L), &passage->json, passage->err);
}

static int take(lua_State *L, void *data)
{
	const struct passage *passage = data;
	struct json_slice json = {passage->json.data, passage->json.length};
	push_core(L, "take");
	value_push(L, json);
	if (passage->first)
		value_push(L, json);
	else
		lua_pushnil(L);
	return call_function(L, 2, 0, passage->err);
}

int bind_state_copy(struct script *from, struct script *to, struct err *err)
{
	struct passage passage = {.first = !to->started, .err = err};
	buf_init(&passage.json, 0);
	int result = call_plain(from->state, save, &passage, err);
	if (result == 0)
		result = call_plain(to->state, take, &passage, err);
	buf_fini(&passage.json);
	return result;
}

void bind_state_open(lua_State *L)
{
	int module = lua_gettop(L);
	lua_newtable(L);
	lua_pushlightuserdata(L, &core_key);
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
	lua_pushvalue(L, module);
	lua_insert(L, -2);
	library_run(L, "perilune.state", 2);
}
