/* bind_state: k8s.state, and how it passes from one generation of a script to the next. */
#include <lauxlib.h>

#include "base/alloc.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/value.h"

static char state_key; /* registry key of the table */

static void push_table(lua_State *L)
{
	lua_pushlightuserdata(L, &state_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
}

struct passage {
	struct buf json;
	struct err *err;
};

static int save(lua_State *L, void *data)
{
	struct passage *passage = data;
	push_table(L);
	return value_encode(L, lua_gettop(L), &passage->json, passage->err);
}

/* Name by name, so that the table stays the one that the script has. */
static int load(lua_State *L, void *data)
{
	const struct passage *passage = data;
	push_table(L);
	value_push(L, (struct json_slice){passage->json.data, passage->json.length});
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		lua_pushvalue(L, -2);
		lua_pushvalue(L, -2);
		lua_rawset(L, -6);
	}
	return 0;
}

int bind_state_copy(struct script *from, struct script *to, struct err *err)
{
	struct passage passage = {.err = err};
	buf_init(&passage.json, 0);
	int result = call_plain(from->state, save, &passage, err);
	if (result == 0)
		result = call_plain(to->state, load, &passage, err);
	buf_fini(&passage.json);
	return result;
}

void bind_state_open(lua_State *L)
{
	lua_newtable(L);
	lua_pushlightuserdata(L, &state_key);
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
	lua_setfield(L, -2, "state");
}
