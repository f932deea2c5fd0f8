/* bind_event: the event argument of a handler, and objects as tables. event.old is decoded when it is read, once. */
#include <lauxlib.h>
#include <string.h>

#include "cache/listener.h"
#include "script/bind.h"
#include "script/value.h"

#define EVENT_TYPE "perilune.event"

struct event {
	struct notification notification; /* object and old counted; NULL after __gc */
	int old;                          /* registry reference to the decoded old, or LUA_NOREF */
};

static const char *const type_names[] = {"add", "update", "delete"};

/* Decoding may use the state's scratch for strings, so packed or projected bytes are opened into memory that Lua owns. */
static void push_slice(lua_State *L, struct json_slice json, const struct buf *scratch)
{
	if (json.data != scratch->data) {
		value_push(L, json);
		return;
	}
	lua_pushlstring(L, json.data, json.length);
	value_push(L, (struct json_slice){lua_tostring(L, -1), json.length});
	lua_remove(L, -2);
}

void bind_object_push(lua_State *L, const struct object *object, struct json_path *const *paths, size_t count)
{
	struct buf *scratch = &state_of(L)->scratch;
	buf_reset(scratch);
	struct json_slice json = object_open(object, scratch);
	if (count == 0) {
		push_slice(L, json, scratch);
		return;
	}
	struct buf kept;
	buf_init(&kept, 0);
	json_keep(json, paths, count, &kept);
	buf_reset(scratch);
	buf_append(scratch, kept.data, kept.length);
	buf_fini(&kept);
	push_slice(L, (struct json_slice){scratch->data, scratch->length}, scratch);
}

void bind_event_push(lua_State *L, const struct notification *notification)
{
	struct event *event = lua_newuserdata(L, sizeof(*event));
	memset(event, 0, sizeof(*event));
	event->old = LUA_NOREF;
	luaL_getmetatable(L, EVENT_TYPE);
	lua_setmetatable(L, -2);
	event->notification = *notification;
	event->notification.object = NULL;
	if (notification->old)
		object_ref(notification->old);
}

static int push_old(lua_State *L, struct event *event)
{
	if (event->notification.type != NOTIFY_UPDATE)
		return 0;
	if (event->old == LUA_NOREF) {
		bind_object_push(L, event->notification.old, NULL, 0);
		event->old = luaL_ref(L, LUA_REGISTRYINDEX);
	}
	lua_rawgeti(L, LUA_REGISTRYINDEX, event->old);
	return 1;
}

static int l_index(lua_State *L)
{
	struct event *event = luaL_checkudata(L, 1, EVENT_TYPE);
	const char *name = luaL_checkstring(L, 2);
	if (strcmp(name, "type") == 0)
		lua_pushstring(L, type_names[event->notification.type]);
	else if (strcmp(name, "initial") == 0)
		lua_pushboolean(L, event->notification.initial);
	else if (strcmp(name, "resync") == 0)
		lua_pushboolean(L, event->notification.resync);
	else if (strcmp(name, "final_state_unknown") == 0)
		lua_pushboolean(L, event->notification.final_state_unknown);
	else if (strcmp(name, "old") == 0)
		return push_old(L, event);
	else
		return luaL_error(L, "an event has no '%s': it has type, initial, old, resync and final_state_unknown", name);
	return 1;
}

static int l_gc(lua_State *L)
{
	struct event *event = luaL_checkudata(L, 1, EVENT_TYPE);
	luaL_unref(L, LUA_REGISTRYINDEX, event->old);
	event->old = LUA_NOREF;
	notification_fini(&event->notification);
	return 0;
}

static const luaL_Reg methods[] = {{"__index", l_index}, {"__gc", l_gc}, {NULL, NULL}};

void bind_event_open(lua_State *L)
{
	luaL_newmetatable(L, EVENT_TYPE);
	luaL_register(L, NULL, methods);
	lua_pushliteral(L, "event");
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}
