/* bind_index: the option `index` and informer:add_index. */
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "script/bind_informer.h"

const char *bind_index_name(lua_State *L, const struct handle *handle, const char *name)
{
	struct buf *full = &state_of(L)->scratch;
	buf_reset(full);
	buf_append_format(full, "%s\n%s\n%s", script_of(L)->path, informer_label(handle->informer), name);
	return buf_text(full);
}

/* Notes over which path the index goes. False when it is there already, over another one. */
static bool note_index(struct script *script, const struct informer *informer, const char *name, const char *text,
		       bool added)
{
	char *key = alloc_format("%p\n%s", (const void *)informer, name);
	const char *before = added ? NULL : strmap_get(script->indexes, key, strlen(key));
	bool same = !before || strcmp(before, text) == 0;
	if (same)
		alloc_free(strmap_put(script->indexes, key, strlen(key), alloc_string(text)));
	alloc_free(key);
	return same;
}

static void add_index(lua_State *L, const struct handle *handle, const char *name, const char *text)
{
	struct err err;
	struct json_path *path = json_path_new(text, &err);
	if (!path)
		bind_misuse(L, "index '%s': %s", name, err.message);
	struct store_index_fn fn = store_path_index(path);
	bool added = store_add_index(informer_store(handle->informer), bind_index_name(L, handle, name), fn) == 0;
	if (!added)
		fn.free(fn.data);
	if (!note_index(script_of(L), handle->informer, name, text, added))
		bind_misuse(L, "index '%s' of %s is there already, over another path", name,
			    informer_label(handle->informer));
}

void bind_index_add(lua_State *L, int index, const struct handle *handle)
{
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		const char *name = bind_text(L, -2, "index"), *path = bind_text(L, -1, "index");
		if (!name || !path)
			bind_misuse(L, "an index is name = \"path\", such as { node = \"spec.nodeName\" }");
		add_index(L, handle, name, path);
	}
}

int bind_index_method(lua_State *L)
{
	struct handle *handle = bind_informer_self(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	bind_index_add(L, 2, handle);
	return 0;
}

/* Pushes the option `index`. False when it is nil. */
bool bind_index_push(lua_State *L, int options)
{
	lua_pushliteral(L, "index");
	lua_rawget(L, options);
	if (!lua_isnil(L, -1) && !lua_istable(L, -1))
		bind_misuse(L, "option 'index' must be a table, not a %s", luaL_typename(L, -1));
	return lua_istable(L, -1);
}
