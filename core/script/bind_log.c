/* bind_log: k8s.log.debug/info/warn/error(message, { key = value }). */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "script/bind.h"

#define MOST_FIELDS 16

/* The fields of the table at 2. Their texts stay on the stack, below the walk, so that they live until they are
 * written: a __tostring may take its neighbours out of the table. */
/* Twice in one JSON line, most readers would take the script's. */
static bool is_own_key(const char *key)
{
	static const char *const own[] = {"time", "level", "msg", "script"};
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (strcmp(own[i], key) == 0)
			return true;
	return false;
}

static int collect_fields(lua_State *L, struct log_field *fields)
{
	int count = 0;
	for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			return bind_misuse(L, "k8s.log: fields have names");
		if (is_own_key(lua_tostring(L, -2)))
			return bind_misuse(L, "k8s.log: '%s' is a key of the log itself", lua_tostring(L, -2));
		if (count == MOST_FIELDS)
			return bind_misuse(L, "k8s.log takes at most %d fields", MOST_FIELDS);
		lua_getglobal(L, "tostring");
		lua_pushvalue(L, -2);
		lua_call(L, 1, 1);
		fields[count].key = lua_tostring(L, -3);
		fields[count].value = lua_tostring(L, -1);
		lua_insert(L, 3);
		lua_pushvalue(L, -2);
		lua_insert(L, 3);
		count++;
	}
	return count;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct log_field *)a)->key, ((const struct log_field *)b)->key);
}

static int write_log(lua_State *L, enum log_level level)
{
	struct log_field fields[MOST_FIELDS + 2] = {{"script", state_of(L)->name}};
	const char *message = luaL_checkstring(L, 1);
	if (!lua_isnoneornil(L, 2)) {
		luaL_checktype(L, 2, LUA_TTABLE);
		luaL_checkstack(L, 2 * MOST_FIELDS + 8, NULL);
		qsort(fields + 1, (size_t)collect_fields(L, fields + 1), sizeof(*fields), by_key);
	}
	if (log_enabled(level))
		log_write(level, fields, "%s", message);
	return 0;
}

static int l_debug(lua_State *L)
{
	return write_log(L, LOG_DEBUG);
}

static int l_info(lua_State *L)
{
	return write_log(L, LOG_INFO);
}

static int l_warn(lua_State *L)
{
	return write_log(L, LOG_WARN);
}

static int l_error(lua_State *L)
{
	return write_log(L, LOG_ERROR);
}

static const luaL_Reg functions[] = {
    {"debug", l_debug}, {"info", l_info}, {"warn", l_warn}, {"error", l_error}, {NULL, NULL}};

void bind_log_open(lua_State *L)
{
	lua_newtable(L);
	luaL_register(L, NULL, functions);
	lua_setfield(L, -2, "log");
}
