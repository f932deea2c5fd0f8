#include "script/bind.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "script/hook.h"
#include "script/host_private.h"
#include "script/limit.h"
#include "script/value.h"

static char err_key; /* registry key of the err metatable */

static void push_err_metatable(lua_State *L)
{
	lua_pushlightuserdata(L, &err_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
}

static int l_err_tostring(lua_State *L)
{
	lua_getfield(L, 1, "reason");
	lua_getfield(L, 1, "message");
	const char *reason = lua_tostring(L, -2), *message = lua_tostring(L, -1);
	lua_pushfstring(L, "%s%s%s", reason ? reason : "", reason && message ? ": " : "", message ? message : "");
	return 1;
}

static void open_err(lua_State *L)
{
	lua_createtable(L, 0, 2);
	lua_pushcfunction(L, l_err_tostring);
	lua_setfield(L, -2, "__tostring");
	lua_pushliteral(L, "err");
	lua_setfield(L, -2, "__metatable");
	lua_pushlightuserdata(L, &err_key);
	lua_insert(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

void bind_err_push(lua_State *L, const struct err *err, struct json_slice causes)
{
	lua_createtable(L, 0, 7);
	if (err->code) {
		lua_pushinteger(L, err->code);
		lua_setfield(L, -2, "code");
	}
	if (*err->reason) {
		lua_pushstring(L, err->reason);
		lua_setfield(L, -2, "reason");
	}
	lua_pushstring(L, err->message);
	lua_setfield(L, -2, "message");
	if (err->retry_after >= 0) {
		lua_pushnumber(L, err->retry_after);
		lua_setfield(L, -2, "retry_after");
	}
	lua_pushboolean(L, err->retryable);
	lua_setfield(L, -2, "retryable");
	lua_pushboolean(L, err->outcome_unknown);
	lua_setfield(L, -2, "outcome_unknown");
	if (causes.data) {
		value_push(L, causes);
		lua_setfield(L, -2, "causes");
	}
	push_err_metatable(L);
	lua_setmetatable(L, -2);
}

static bool is_err(lua_State *L, int index)
{
	if (!lua_istable(L, index) || !lua_getmetatable(L, index))
		return false;
	push_err_metatable(L);
	bool same = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return same;
}

static const char *raw_string(lua_State *L, int index, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, index);
	const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
	lua_pop(L, 1);
	return text; /* the table keeps it alive */
}

bool bind_err_read(lua_State *L, int index, struct err *out)
{
	if (index < 0)
		index = lua_gettop(L) + index + 1;
	if (!is_err(L, index))
		return false;
	const char *reason = raw_string(L, index, "reason"), *message = raw_string(L, index, "message");
	err_set(out, reason ? reason : "", "%s%s%s", reason ? reason : "", reason ? ": " : "", message ? message : "");
	lua_pushliteral(L, "code");
	lua_rawget(L, index);
	out->code = (int)lua_tointeger(L, -1);
	lua_pop(L, 1);
	return true;
}

/* --- options --- */

/* The script's innermost frame. What of the host's own Lua lies between is none of its author's business, and a tail
 * call there leaves no frame to count. */
static bool find_frame(lua_State *L, lua_Debug *frame)
{
	for (int level = 1; lua_getstack(L, level, frame); level++) {
		lua_getinfo(L, "Sl", frame);
		if (frame->currentline > 0 && strncmp(frame->source, "=perilune.", 10) != 0)
			return true;
	}
	return false;
}

/* Ends with ": "; "" where the script is in no frame. */
static void push_place(lua_State *L)
{
	lua_Debug frame;
	if (find_frame(L, &frame))
		lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
	else
		lua_pushliteral(L, "");
}

void bind_place(lua_State *L, struct buf *out)
{
	lua_Debug frame;
	if (!find_frame(L, &frame)) {
		buf_append_char(out, '?');
		return;
	}
	const char *folder = script_of(L)->folder, *file = frame.source + (*frame.source == '@');
	size_t length = folder ? strlen(folder) : 0;
	if (length && !strncmp(file, folder, length) && file[length] == '/')
		file += length + 1;
	buf_append_format(out, "%s:%d", file, frame.currentline);
}

int bind_misuse(lua_State *L, const char *format, ...)
{
	va_list arguments;
	limit_check(L); /* what took too long is no misuse */
	push_place(L);
	va_start(arguments, format);
	lua_pushvfstring(L, format, arguments);
	va_end(arguments);
	lua_concat(L, 2);
	return lua_error(L);
}

void bind_check_options(lua_State *L, int index, const char *what, const char *const *known)
{
	if (!lua_istable(L, index))
		bind_misuse(L, "%s takes a table of options, not a %s", what, luaL_typename(L, index));
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			bind_misuse(L, "%s: options have names; this table has a %s for one", what,
				    luaL_typename(L, -2));
		const char *name = lua_tostring(L, -2);
		struct suggest suggest;
		suggest_init(&suggest, name);
		const char *const *one = known;
		for (; *one && strcmp(*one, name) != 0; one++)
			suggest_offer(&suggest, *one);
		if (*one)
			continue;
		if (suggest.best)
			bind_misuse(L, "%s: unknown option '%s', did you mean '%s'?", what, name, suggest.best);
		bind_misuse(L, "%s: unknown option '%s'", what, name);
	}
}

/* Raw: a metatable could answer with texts that nothing keeps alive, and bind_check_options does not see them. */
static int push_option(lua_State *L, int index, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, index);
	return lua_type(L, -1);
}

static int option(lua_State *L, int index, const char *name, int type)
{
	int found = push_option(L, index, name);
	if (found != LUA_TNIL && found != type)
		bind_misuse(L, "option '%s' must be a %s, not a %s", name, lua_typename(L, type),
			    lua_typename(L, found));
	return found;
}

const char *bind_text(lua_State *L, int index, const char *name)
{
	size_t length;
	if (lua_type(L, index) != LUA_TSTRING)
		return NULL;
	const char *text = lua_tolstring(L, index, &length);
	if (strlen(text) != length)
		bind_misuse(L, "'%s' holds a NUL character", name);
	return text;
}

const char *bind_string_option(lua_State *L, int index, const char *name)
{
	option(L, index, name, LUA_TSTRING);
	const char *text = bind_text(L, -1, name);
	lua_pop(L, 1);
	return text;
}

const char *const *bind_strings_option(lua_State *L, int index, const char *name, size_t *count)
{
	*count = 0;
	int type = push_option(L, index, name), list = lua_gettop(L);
	if (type == LUA_TNIL)
		return NULL;
	size_t length = type == LUA_TTABLE ? lua_objlen(L, list) : 1;
	const char **texts = lua_newuserdata(L, (length + 1) * sizeof(*texts));
	for (; *count < length; ++*count) {
		if (type == LUA_TTABLE)
			lua_rawgeti(L, list, (int)*count + 1);
		else
			lua_pushvalue(L, list);
		texts[*count] = bind_text(L, -1, name);
		if (!texts[*count])
			bind_misuse(L, "option '%s' must be a string or a list of strings", name);
		lua_pop(L, 1);
	}
	texts[length] = NULL;
	return texts;
}

double bind_number_option(lua_State *L, int index, const char *name, double fallback)
{
	double number = option(L, index, name, LUA_TNUMBER) == LUA_TNIL ? fallback : lua_tonumber(L, -1);
	if (!(number >= 0 && number < 1e15))
		bind_misuse(L, "option '%s' must be a number from 0 on", name);
	lua_pop(L, 1);
	return number;
}

bool bind_bool_option(lua_State *L, int index, const char *name, bool fallback)
{
	bool value = option(L, index, name, LUA_TBOOLEAN) == LUA_TNIL ? fallback : lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

int bind_function(lua_State *L, int index, const char *what)
{
	if (!lua_isfunction(L, index))
		return bind_misuse(L, "%s takes a function, not a %s", what, luaL_typename(L, index));
	lua_pushvalue(L, index);
	return state_ref(L);
}

#define MOST_REGISTERED 10000

struct script *bind_registering(lua_State *L)
{
	struct script *script = script_of(L);
	hook_refuse(L, "registering");
	if (script->registered >= MOST_REGISTERED)
		bind_misuse(L, "a script can't register more than %d factories, informers, handlers and calls",
			    MOST_REGISTERED);
	return script;
}

int bind_nearest(lua_State *L)
{
	struct suggest suggest;
	suggest_init(&suggest, luaL_checkstring(L, 1));
	luaL_checktype(L, 2, LUA_TTABLE);
	for (size_t i = 1; i <= lua_objlen(L, 2); i++) {
		lua_rawgeti(L, 2, (int)i);
		suggest_offer(&suggest, luaL_checkstring(L, -1)); /* the table keeps it alive */
		lua_pop(L, 1);
	}
	lua_pushstring(L, suggest.best);
	return 1;
}

/* --- types --- */

static int l_unknown_method(lua_State *L)
{
	lua_pushvalue(L, 2);
	lua_rawget(L, lua_upvalueindex(1));
	if (!lua_isnil(L, -1))
		return 1;
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
	return luaL_error(L, "%s has no '%s'", lua_tostring(L, lua_upvalueindex(2)), name);
}

void bind_type(lua_State *L, const char *type, const char *name, const luaL_Reg *methods, lua_CFunction gc,
	       lua_CFunction to_string)
{
	luaL_newmetatable(L, type);
	lua_newtable(L);
	luaL_register(L, NULL, methods);
	lua_pushstring(L, name);
	lua_pushcclosure(L, l_unknown_method, 2);
	lua_setfield(L, -2, "__index");
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	if (gc) {
		lua_pushcfunction(L, gc);
		lua_setfield(L, -2, "__gc");
	}
	if (to_string) {
		lua_pushcfunction(L, to_string);
		lua_setfield(L, -2, "__tostring");
	}
	lua_pop(L, 1);
}

void *bind_userdata(lua_State *L, int index, const char *type)
{
	void *object = lua_touserdata(L, index);
	if (!object || !lua_getmetatable(L, index))
		return NULL;
	luaL_getmetatable(L, type);
	bool is = lua_rawequal(L, -1, -2);
	lua_pop(L, 2);
	return is ? object : NULL;
}

void *bind_self(lua_State *L, const char *type, const char *name)
{
	void *object = bind_userdata(L, 1, type);
	if (!object)
		bind_misuse(L, "this is a method of %s: call it with a colon, such as my_%s:method()", name, name);
	return object;
}

/* --- the module --- */

/* Upvalues: the real table and what it is called. */
static int l_unknown_name(lua_State *L)
{
	const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
	const char *what = lua_tostring(L, lua_upvalueindex(2));
	struct suggest suggest;
	suggest_init(&suggest, name);
	for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)); lua_pop(L, 1))
		suggest_offer(&suggest, lua_tostring(L, -2));
	if (suggest.best)
		return bind_misuse(L, "%s has no '%s', did you mean '%s'?", what, name, suggest.best);
	return bind_misuse(L, "%s has no '%s'", what, name);
}

static int l_closed(lua_State *L)
{
	return bind_misuse(L, "%s can't be changed", lua_tostring(L, lua_upvalueindex(1)));
}

/* The table on top is replaced by an empty one over it, so that a misspelt name and an assignment are errors. */
static void close_table(lua_State *L, const char *what)
{
	int table = lua_gettop(L);
	lua_createtable(L, 0, 1);
	lua_pushvalue(L, table);
	lua_pushstring(L, what);
	lua_pushcclosure(L, l_unknown_name, 2);
	lua_setfield(L, -2, "__index");
	lua_setmetatable(L, table);
	lua_newtable(L);
	lua_createtable(L, 0, 3);
	lua_pushvalue(L, table);
	lua_setfield(L, -2, "__index");
	lua_pushstring(L, what);
	lua_pushcclosure(L, l_closed, 1);
	lua_setfield(L, -2, "__newindex");
	lua_pushliteral(L, "perilune");
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
	lua_replace(L, table);
}

static void close_parts(lua_State *L)
{
	static const char *const parts[][2] = {{"log", "k8s.log"},
					       {"json", "k8s.json"},
					       {"yaml", "k8s.yaml"},
					       {"status", "k8s.status"},
					       {"http", "k8s.http"},
					       {"metric", "k8s.metric"},
					       {"conditions", "k8s.conditions"},
					       {"predicate", "k8s.predicate"}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		lua_getfield(L, -1, parts[i][0]);
		close_table(L, parts[i][1]);
		lua_setfield(L, -2, parts[i][0]);
	}
}

/* config: --set's key=value pairs, as text. */
static void push_config(lua_State *L)
{
	struct state *state = state_of(L);
	lua_newtable(L);
	const char *const *settings = state->host ? host_get_options(state->host)->settings : NULL;
	for (; settings && *settings; settings++) {
		const char *equals = strchr(*settings, '=');
		lua_pushlstring(L, *settings, (size_t)(equals - *settings));
		lua_pushstring(L, equals + 1);
		lua_rawset(L, -3);
	}
}

void bind_open(lua_State *L)
{
	static void (*const parts[])(lua_State *) = {
	    bind_json_open,     bind_log_open,     bind_time_open,     bind_client_open,     bind_helpers_open,
	    bind_informer_open, bind_factory_open, bind_event_open,    bind_controller_open, bind_http_open,
	    bind_metric_open,   bind_needs_open,   bind_recorder_open, bind_state_open};
	value_open(L);
	open_err(L);
	lua_newtable(L);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		parts[i](L);
	push_config(L);
	lua_setfield(L, -2, "config");
	close_parts(L);
	close_table(L, "perilune");
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_insert(L, -2);
	lua_setfield(L, -2, "perilune");
	lua_pop(L, 1);
}
