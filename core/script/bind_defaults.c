/* bind_defaults: what a factory's informers are asked for where they say nothing themselves. Options of k8s.factory in;
 * a table of options for each informer out. */
#include <lauxlib.h>
#include <string.h>

#include "script/bind_informer.h"

/* Of a table of options: per_kind, one kind, a list of paths. */
#define DEEPEST 3

static void check_texts(lua_State *L, int options, const char *name)
{
	int top = lua_gettop(L);
	size_t count;
	bind_strings_option(L, options, name, &count);
	lua_settop(L, top);
}

/* What may be said of all kinds and of one alike. */
static void check_values(lua_State *L, int options, const char *what)
{
	bind_string_option(L, options, "label_selector");
	bind_string_option(L, options, "field_selector");
	check_texts(L, options, "drop");
	bind_resync_option(L, options, what, 0);
	bind_informer_push_transform(L, options);
	lua_pop(L, 1);
}

static void check_kind(lua_State *L, int kind, int options)
{
	static const char *const known[] = {"label_selector", "field_selector", "drop", "resync", "transform", NULL};
	const char *name = bind_text(L, kind, "per_kind");
	if (!name || !strchr(name, '/'))
		bind_misuse(L, "k8s.factory: per_kind has %s for a kind; write apiVersion/kind, such as [\"v1/Pod\"]",
			    name ? lua_pushfstring(L, "'%s'", name) : luaL_typename(L, kind));
	const char *what = lua_pushfstring(L, "k8s.factory: per_kind[\"%s\"]", name);
	bind_check_options(L, options, what, known);
	check_values(L, options, what);
	lua_pop(L, 1);
}

static void check_kinds(lua_State *L, int options)
{
	lua_pushliteral(L, "per_kind");
	lua_rawget(L, options);
	int kinds = lua_gettop(L);
	if (!lua_isnil(L, kinds) && !lua_istable(L, kinds))
		bind_misuse(L, "k8s.factory: per_kind must be a table, not a %s", luaL_typename(L, kinds));
	if (lua_istable(L, kinds))
		for (lua_pushnil(L); lua_next(L, kinds); lua_pop(L, 1))
			check_kind(L, kinds + 1, kinds + 2);
	lua_pop(L, 1);
}

/* Pushes a copy of the table at index: what the script does with its own later is not meant. */
static void push_copy(lua_State *L, int index, int depth)
{
	luaL_checkstack(L, 4, "options");
	lua_newtable(L);
	int copy = lua_gettop(L);
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		lua_pushvalue(L, copy + 1);
		if (lua_istable(L, copy + 2) && depth < DEEPEST)
			push_copy(L, copy + 2, depth + 1);
		else
			lua_pushvalue(L, copy + 2);
		lua_rawset(L, copy);
	}
}

int bind_defaults_new(lua_State *L, int options)
{
	static const char *const known[] = {"namespace", "label_selector", "field_selector", "drop",
					    "resync",    "transform",      "per_kind",       NULL};
	bind_check_options(L, options, "k8s.factory", known);
	check_texts(L, options, "namespace");
	check_values(L, options, "k8s.factory");
	check_kinds(L, options);
	push_copy(L, options, 1);
	return state_ref(L);
}

/* Whether options says, by an option of another name, that it does not want the default. */
static bool excludes(lua_State *L, int options, const char *name)
{
	if (strcmp(name, "drop") != 0)
		return strcmp(name, "per_kind") == 0;
	lua_pushliteral(L, "keep");
	lua_rawget(L, options);
	bool keeps = !lua_isnil(L, -1);
	lua_pop(L, 1);
	return keeps;
}

/* Adds to options what they do not have of the table on top, which it takes. */
static void add_missing(lua_State *L, int options)
{
	int defaults = lua_gettop(L);
	for (lua_pushnil(L); lua_next(L, defaults); lua_pop(L, 1)) {
		lua_pushvalue(L, defaults + 1);
		lua_rawget(L, options);
		bool given = !lua_isnil(L, -1);
		lua_pop(L, 1);
		if (given || excludes(L, options, lua_tostring(L, defaults + 1)))
			continue;
		lua_pushvalue(L, defaults + 1);
		lua_pushvalue(L, defaults + 2);
		lua_rawset(L, options);
	}
	lua_pop(L, 1);
}

/* Pushes the defaults of the kind that options ask for, if there are any. */
static bool push_kind(lua_State *L, int options, int defaults)
{
	const char *api_version = bind_string_option(L, options, "apiVersion");
	const char *kind = bind_string_option(L, options, "kind");
	if (!kind)
		kind = bind_string_option(L, options, "resource");
	lua_pushliteral(L, "per_kind");
	lua_rawget(L, defaults);
	if (lua_istable(L, -1) && api_version && kind) {
		lua_pushfstring(L, "%s/%s", api_version, kind);
		lua_rawget(L, -2);
		lua_remove(L, -2);
	}
	if (lua_istable(L, -1))
		return true;
	lua_pop(L, 1);
	return false;
}

void bind_defaults_add(lua_State *L, int reference, int options)
{
	if (reference == LUA_NOREF)
		return;
	push_copy(L, options, DEEPEST);
	lua_replace(L, options);
	lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
	if (push_kind(L, options, lua_gettop(L)))
		add_missing(L, options);
	add_missing(L, options);
}
