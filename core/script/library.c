#include "script/library.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "script/bind.h"
#include "script/limit.h"
#include "script/script.h"
#include "script/state.h"
#include "script/task.h"

#define SOURCE_LIMIT (4u << 20)

/* lua-cjson's own entry. Its header lies beside PUC Lua's, which must not be taken for LuaJIT's. */
extern int luaopen_cjson(lua_State *L);

/* Generated from lua/ by the build. */
struct lua_module {
	const char *name, *file;
	const unsigned char *bytes;
	size_t length;
};
extern const struct lua_module lua_modules[];

static const struct lua_module *find_module(const char *name)
{
	for (const struct lua_module *module = lua_modules; module->name; module++)
		if (strcmp(module->name, name) == 0)
			return module;
	return NULL;
}

static void push_module(lua_State *L, const struct lua_module *module)
{
	const char *chunk = lua_pushfstring(L, "=%s", module->name);
	if (luaL_loadbuffer(L, (const char *)module->bytes, module->length, chunk))
		lua_error(L);
	lua_remove(L, -2);
}

int library_load(lua_State *L, const char *text, size_t length, const char *chunk, struct err *err)
{
	/* "t": LuaJIT then refuses bytecode, which could be made to break out of the state. */
	if (luaL_loadbufferx(L, text, length, chunk, "t") == 0)
		return 0;
	const char *message = lua_tostring(L, -1);
	bool placed = strncmp(message, chunk + 1, strlen(chunk + 1)) == 0; /* bytecode is refused without a place */
	return err_set(err, "", "%s%s%s", placed ? "" : chunk + 1, placed ? "" : ": ", message);
}

static int read_stream(FILE *file, struct buf *out)
{
	char chunk[16384];
	size_t got;
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		if (buf_append(out, chunk, got) < 0)
			return -1;
	return ferror(file) ? -1 : 0;
}

char *library_read(const char *path, size_t *length, struct err *err)
{
	FILE *file = fopen(path, "rbe");
	if (!file) {
		err_set(err, "", "cannot read %s: %s", path, strerror(errno));
		return NULL;
	}
	struct buf out;
	buf_init(&out, SOURCE_LIMIT);
	errno = 0;
	int result = read_stream(file, &out);
	int why = errno;
	fclose(file);
	if (result < 0) {
		err_set(err, "", "cannot read %s: %s", path, why ? strerror(why) : "larger than 4 MiB");
		buf_fini(&out);
		return NULL;
	}
	*length = out.length;
	return buf_take(&out);
}

/* Pushes "@PATH" of the module beside the script; NULL when there is none. */
static const char *push_module_path(lua_State *L, const char *name)
{
	struct script *script = script_of(L);
	struct buf *scratch = &state_of(L)->scratch;
	char *path = script ? script_module_path(script, name) : NULL;
	if (!path)
		return NULL;
	buf_reset(scratch);
	files_note(&script->files, path);
	buf_append_format(scratch, "@%s", path);
	alloc_free(path);
	lua_pushlstring(L, scratch->data, scratch->length);
	return lua_tostring(L, -1);
}

/* The source of the module beside the script. What C allocates is freed before anything can raise. */
static int push_file(lua_State *L, const char *name)
{
	struct err err;
	size_t length;
	const char *chunk = push_module_path(L, name);
	if (!chunk)
		return -1;
	char *text = library_read(chunk + 1, &length, &err);
	if (!text)
		return luaL_error(L, "%s", err.message);
	int failed = luaL_loadbufferx(L, text, length, chunk, "t");
	alloc_free(text);
	if (failed)
		return lua_error(L);
	lua_remove(L, -2);
	return 0;
}

/* What _LOADED holds for a module until its chunk has returned. */
static char loading;

static void push_chunk(lua_State *L, const char *name)
{
	const struct lua_module *module = strncmp(name, "perilune.", 9) == 0 ? find_module(name) : NULL;
	if (module)
		push_module(L, module);
	else if (push_file(L, name) < 0)
		bind_misuse(
		    L, "module '%s' not found: scripts can require perilune, cjson and the files of their own folder",
		    name);
}

/* require for scripts: a C function, so that waiting for the host inside a module's top level is an error. */
static int l_require(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	lua_settop(L, 1);
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, 2, name);
	if (lua_touserdata(L, -1) == &loading)
		return bind_misuse(L, "module '%s' is being loaded already, or has failed before", name);
	if (lua_toboolean(L, -1))
		return 1;
	lua_pop(L, 1);
	push_chunk(L, name);
	lua_pushlightuserdata(L, &loading);
	lua_setfield(L, 2, name);
	lua_pushvalue(L, 1);
	lua_call(L, 1, 1);
	if (lua_isnil(L, -1)) {
		lua_pop(L, 1);
		lua_pushboolean(L, 1);
	}
	lua_pushvalue(L, -1);
	lua_setfield(L, 2, name);
	return 1;
}

/* A searcher for full-library states, behind package.preload. */
static int l_search(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	const struct lua_module *module = find_module(name);
	if (module)
		push_module(L, module);
	else
		lua_pushfstring(L, "\n\tno module '%s' inside the program", name);
	return 1;
}

static void add_searcher(lua_State *L)
{
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "loaders");
	for (int i = (int)lua_objlen(L, -1); i >= 2; i--) {
		lua_rawgeti(L, -1, i);
		lua_rawseti(L, -2, i + 1);
	}
	lua_pushcfunction(L, l_search);
	lua_rawseti(L, -2, 2);
	lua_pop(L, 2);
}

static int l_killed(lua_State *L)
{
	lua_pushboolean(L, state_of(L)->killed != KILL_NONE);
	return 1;
}

/* What table.sort compares by where it is told nothing: the time limit stops it, as it would not LuaJIT's own. */
static int l_less(lua_State *L)
{
	limit_check(L);
	lua_pushboolean(L, lua_lessthan(L, 1, 2));
	return 1;
}

void library_run(lua_State *L, const char *name, int arguments)
{
	push_module(L, find_module(name));
	lua_insert(L, lua_gettop(L) - arguments);
	lua_call(L, arguments, 0);
}

void library_open(lua_State *L, bool full)
{
	luaL_openlibs(L);
	if (!full)
		bind_string_open(L); /* before all that takes the functions from there */
	task_push_guard(L);
	lua_pushcfunction(L, l_killed);
	library_run(L, "perilune.guard", 3);
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_pushcfunction(L, luaopen_cjson);
	lua_call(L, 0, 1);
	lua_setfield(L, -2, "cjson");
	lua_pop(L, 1);
	bind_open(L);
	add_searcher(L);
	if (full)
		return;
	lua_pushcfunction(L, l_require);
	lua_pushcfunction(L, l_less);
	library_run(L, "perilune.globals", 2);
}
