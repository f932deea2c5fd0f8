#include "script/audit.h"

#include <lauxlib.h>

#include "base/alloc.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/host_private.h"
#include "script/state.h"

ALLOC_TYPE(audit_type, "audit");

struct audit {
	struct state *state;
	int handlers; /* host.lua's table, in the registry */
};

/* One entry into its state. */
struct entry {
	struct audit *audit;
	const char *function;
	const char *const *texts;
	size_t count;
	struct buf *out;
	struct err *err;
};

/* --- what scripts find --- */

/* "name" or "library.name" of each key of the table on top of the stack that is a string. */
static void append_names(lua_State *L, const char *library, struct buf *out)
{
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			continue;
		const char *name = lua_tostring(L, -2);
		buf_append_format(out, "%s%s%s\n", library, *library ? "." : "", name);
		if (!*library && lua_istable(L, -1) && !lua_rawequal(L, -1, LUA_GLOBALSINDEX))
			append_names(L, name, out);
	}
}

static int list_globals(lua_State *L, void *data)
{
	lua_pushvalue(L, LUA_GLOBALSINDEX);
	append_names(L, "", data);
	return 0;
}

/* Out of a script's state made for that alone, in which nothing has run yet. */
static int read_globals(struct host *host, struct buf *out, struct err *err)
{
	struct state *state = state_new(&(struct state_options){.name = "globals", .host = host}, err);
	int result = state ? call_plain(state, list_globals, out, err) : -1;
	if (state)
		state_free(state);
	return result;
}

/* --- the state --- */

static int open_handlers(lua_State *L, void *data)
{
	struct entry *entry = data;
	lua_getglobal(L, "require");
	lua_pushliteral(L, "perilune.audit.host");
	if (call_function(L, 1, 1, entry->err))
		return -1;
	lua_createtable(L, 0, 2);
	lua_pushcfunction(L, bind_nearest);
	lua_setfield(L, -2, "nearest");
	if (entry->out)
		lua_pushlstring(L, buf_text(entry->out), entry->out->length);
	else
		lua_pushnil(L);
	lua_setfield(L, -2, "globals");
	if (call_function(L, 1, 1, entry->err))
		return -1;
	entry->audit->handlers = luaL_ref(L, LUA_REGISTRYINDEX);
	return 0;
}

static int open_state(struct audit *audit, struct host *host, struct err *err)
{
	struct buf globals;
	bool whole = host_get_options(host)->unsafe_libs;
	struct entry entry = {.audit = audit, .out = whole ? NULL : &globals, .err = err};
	buf_init(&globals, 0);
	int result = whole ? 0 : read_globals(host, &globals, err);
	if (!result)
		audit->state =
		    state_new(&(struct state_options){.name = "audit", .host = host, .full_library = true}, err);
	if (audit->state)
		result = call_plain(audit->state, open_handlers, &entry, err);
	buf_fini(&globals);
	return audit->state ? result : -1;
}

struct audit *audit_new(struct host *host, struct err *err)
{
	struct audit *audit = alloc_object(&audit_type, sizeof(*audit));
	if (!open_state(audit, host, err))
		return audit;
	audit_free(audit);
	return NULL;
}

void audit_free(struct audit *audit)
{
	if (!audit)
		return;
	if (audit->state)
		state_free(audit->state);
	alloc_object_free(&audit_type, audit);
}

/* --- questions --- */

static int run(lua_State *L, void *data)
{
	const struct entry *entry = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, entry->audit->handlers);
	lua_getfield(L, -1, entry->function);
	for (size_t i = 0; i < entry->count; i++)
		lua_pushstring(L, entry->texts[i]);
	if (call_function(L, (int)entry->count, 1, entry->err))
		return -1;
	size_t length;
	const char *text = lua_tolstring(L, -1, &length);
	if (text)
		buf_append(entry->out, text, length);
	return 0;
}

int audit_ask(struct audit *audit, const char *function, const char *const *texts, size_t count, struct buf *out,
	      struct err *err)
{
	struct entry entry = {audit, function, texts, count, out, err};
	return call_plain(audit->state, run, &entry, err);
}
