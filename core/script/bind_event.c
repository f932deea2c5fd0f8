/* bind_event: the event argument of a handler, and objects as tables. event.old is decoded when it is read, once. */
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/listener.h"
#include "script/bind.h"
#include "script/value.h"
#include "json/shape.h"

#define EVENT_TYPE "perilune.event"

struct event {
	struct notification notification; /* old counted, NULL once it is decoded; object NULL */
	struct fields *fields;            /* counted */
	struct state *state;              /* that counts what old has, while it is there */
	bool decoded;                     /* old is the one element of the userdata's environment */
};

ALLOC_TYPE(fields_type, "fields");

struct fields {
	unsigned references;
	struct json_shape *shape;
};

const char *const bind_event_names[] = {"add", "update", "delete"};

/* What every object has beside the fields that are asked for. */
static const char *const always[] = {"apiVersion",         "kind",         "metadata.name",
				     "metadata.namespace", "metadata.uid", "metadata.resourceVersion"};

static int add_path(struct fields *fields, const char *text, struct err *err)
{
	struct json_path *path = json_path_new(text, err);
	if (!path)
		return -1;
	bool keys = json_path_is_keys(path);
	if (keys)
		json_shape_add(fields->shape, path);
	json_path_free(path);
	return keys ? 0 : err_set(err, "", "path \"%s\": only keys can be asked for, no [n] or [*]", text);
}

static int add_paths(struct fields *fields, const char *const *paths, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (add_path(fields, paths[i], err) < 0)
			return -1;
	return 0;
}

struct fields *fields_new(const char *const *paths, size_t count, struct err *err)
{
	struct fields *fields = alloc_object(&fields_type, sizeof(*fields));
	fields->references = 1;
	fields->shape = json_shape_new();
	add_paths(fields, always, sizeof(always) / sizeof(*always), err);
	if (!add_paths(fields, paths, count, err))
		return fields;
	fields_unref(fields);
	return NULL;
}

struct fields *fields_ref(struct fields *fields)
{
	if (fields)
		fields->references++;
	return fields;
}

void fields_unref(struct fields *fields)
{
	if (!fields || --fields->references)
		return;
	json_shape_free(fields->shape);
	alloc_object_free(&fields_type, fields);
}

void bind_object_push(lua_State *L, const struct object *object, const struct fields *fields)
{
	struct buf *scratch = &state_of(L)->scratch;
	buf_reset(scratch);
	value_push_part(L, object_open(object, scratch), fields ? fields->shape : NULL);
}

void bind_event_push(lua_State *L, const struct notification *notification, struct fields *fields)
{
	struct event *event = lua_newuserdata(L, sizeof(*event));
	memset(event, 0, sizeof(*event));
	luaL_getmetatable(L, EVENT_TYPE);
	lua_setmetatable(L, -2);
	event->notification = *notification;
	event->notification.object = NULL;
	event->fields = fields_ref(fields);
	event->state = state_of(L);
	if (!notification->old)
		return;
	object_ref(notification->old);
	event->state->kept += object_length(notification->old);
}

static void drop_old(struct event *event)
{
	if (event->notification.old)
		event->state->kept -= object_length(event->notification.old);
	notification_fini(&event->notification);
}

/* The event is at 1. */
static int push_old(lua_State *L, struct event *event)
{
	if (event->notification.type != NOTIFY_UPDATE)
		return 0;
	if (!event->decoded) {
		lua_createtable(L, 1, 0);
		bind_object_push(L, event->notification.old, event->fields);
		lua_rawseti(L, -2, 1);
		lua_setfenv(L, 1);
		event->decoded = true;
		drop_old(event);
	}
	lua_getfenv(L, 1);
	lua_rawgeti(L, -1, 1);
	return 1;
}

static int l_index(lua_State *L)
{
	struct event *event = luaL_checkudata(L, 1, EVENT_TYPE);
	const char *name = luaL_checkstring(L, 2);
	if (strcmp(name, "type") == 0)
		lua_pushstring(L, bind_event_names[event->notification.type]);
	else if (strcmp(name, "initial") == 0)
		lua_pushboolean(L, event->notification.initial);
	else if (strcmp(name, "resync") == 0)
		lua_pushboolean(L, event->notification.resync);
	else if (strcmp(name, "final_state_unknown") == 0)
		lua_pushboolean(L, event->notification.final_state_unknown);
	else if (strcmp(name, "old") == 0)
		return push_old(L, event);
	else
		return bind_misuse(L, "an event has no '%s': it has type, initial, old, resync and final_state_unknown",
				   name);
	return 1;
}

static int l_gc(lua_State *L)
{
	struct event *event = luaL_checkudata(L, 1, EVENT_TYPE);
	drop_old(event);
	fields_unref(event->fields);
	event->fields = NULL;
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
