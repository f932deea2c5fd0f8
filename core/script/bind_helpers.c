/* bind_helpers: the parts of `require "perilune"` that are Lua alone and ask no server: lua/perilune/path.lua and the
 * others in the list below. */
#include <lauxlib.h>

#include "script/bind.h"
#include "script/library.h"
#include "script/value.h"

/* write_as_text(metatable): where JSON is written, tables with it stand as the text that its __tostring gives. */
static int l_write_as_text(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	value_write_as_text(L, 1);
	return 0;
}

/* Each gets (k8s, core) and adds its functions to k8s. In this order: conditions uses path and equal. */
void bind_helpers_open(lua_State *L)
{
	static const char *const modules[] = {"perilune.path",       "perilune.equal",     "perilune.quantity",
					      "perilune.conditions", "perilune.predicate", "perilune.time"};
	int module = lua_gettop(L);
	bind_client_push_core(L);
	lua_pushcfunction(L, l_write_as_text);
	lua_setfield(L, -2, "write_as_text");
	for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		lua_pushvalue(L, module);
		lua_pushvalue(L, module + 1);
		library_run(L, modules[i], 2);
	}
	lua_pop(L, 1);
}
