/* bind_handler: informer:add_event_handler, and the registration that it returns. */
#include <lauxlib.h>

#include "script/bind_informer.h"
#include "script/consumer.h"
#include "script/hook.h"

#define REGISTRATION_TYPE "perilune.registration"

struct registration {
	struct script *script;
	unsigned id; /* the consumer's; it may be gone */
};

/* Pushes the three functions, each or nil, in the order of enum notification_type. */
static void push_functions(lua_State *L)
{
	for (int type = 0; type < 3; type++) {
		lua_pushstring(L, bind_event_names[type]);
		lua_rawget(L, 2);
		if (!lua_isnil(L, -1) && !lua_isfunction(L, -1))
			bind_misuse(L, "add_event_handler: %s must be a function, not a %s", bind_event_names[type],
				    luaL_typename(L, -1));
	}
}

/* Takes them from the top of the stack. */
static void take_functions(lua_State *L, int *references)
{
	for (int i = 2; i >= 0; i--) {
		bool given = !lua_isnil(L, -1);
		int reference = state_ref(L);
		references[i] = given ? reference : LUA_NOREF;
	}
}

static struct registration *push_registration(lua_State *L)
{
	struct registration *registration = lua_newuserdata(L, sizeof(*registration));
	*registration = (struct registration){.script = bind_registering(L)};
	luaL_getmetatable(L, REGISTRATION_TYPE);
	lua_setmetatable(L, -2);
	return registration;
}

static bool has_function(lua_State *L)
{
	bool found = false;
	for (int type = 0; type < 3; type++) {
		lua_getfield(L, 2, bind_event_names[type]);
		found |= !lua_isnil(L, -1);
		lua_pop(L, 1);
	}
	return found;
}

/* A resync calls update alone, and it asks a filter again, which may make an add or a delete of it. */
static void check_resync(lua_State *L)
{
	static const char *const takers[] = {"update", "filter", NULL};
	bool taken = bind_number_option(L, 2, "resync", 0) == 0;
	for (const char *const *name = takers; *name; name++) {
		lua_pushstring(L, *name);
		lua_rawget(L, 2);
		taken |= !lua_isnil(L, -1);
		lua_pop(L, 1);
	}
	if (!taken)
		bind_misuse(L, "add_event_handler: resync calls update, which this handler lacks");
}

static struct hook *new_filter(lua_State *L)
{
	lua_pushliteral(L, "filter");
	lua_rawget(L, 2);
	bool given = !lua_isnil(L, -1);
	if (given && !lua_isfunction(L, -1))
		bind_misuse(L, "add_event_handler: filter must be a function, not a %s", luaL_typename(L, -1));
	struct hook *filter = given ? hook_new(L, lua_gettop(L), HOOK_FILTER) : NULL;
	lua_pop(L, 1);
	return filter;
}

static int give_back(lua_State *L, const struct consumer_options *options, const struct err *err)
{
	hook_free(options->filter);
	for (int i = 0; i < 3; i++)
		luaL_unref(L, LUA_REGISTRYINDEX, options->functions[i]);
	return bind_misuse(L, "add_event_handler: fields: %s", err->message);
}

static struct consumer *add_consumer(lua_State *L, const struct consumer_options *options)
{
	struct buf place;
	buf_init(&place, 0);
	bind_place(L, &place);
	struct consumer *consumer = consumer_new(options, buf_text(&place));
	buf_fini(&place);
	return consumer;
}

int bind_handler_add(lua_State *L)
{
	static const char *const known[] = {"add",    "update", "delete",      "filter",
					    "fields", "resync", "every_event", NULL};
	struct handle *handle = bind_informer_self(L);
	struct err err;
	size_t count;
	bind_check_options(L, 2, "add_event_handler", known);
	struct consumer_options options = {
	    .factory = handle->factory,
	    .informer = handle->informer,
	    .functions = {LUA_NOREF, LUA_NOREF, LUA_NOREF},
	    .resync = bind_resync_option(L, 2, "add_event_handler", handle->resync),
	    .every_event = bind_bool_option(L, 2, "every_event", false),
	};
	if (!has_function(L))
		return bind_misuse(L, "add_event_handler: add, update or delete is missing");
	check_resync(L);
	if (factory_is_shut_down(handle->factory->factory))
		return bind_misuse(L, "add_event_handler: the factory has been shut down");
	const char *const *fields = bind_strings_option(L, 2, "fields", &count);
	struct registration *registration = push_registration(L);
	push_functions(L);
	take_functions(L, options.functions);
	options.filter = new_filter(L);
	if (fields && !(options.fields = fields_new(fields, count, &err)))
		return give_back(L, &options, &err);
	registration->id = consumer_id(add_consumer(L, &options));
	script_open_ready(registration->script);
	return 1;
}

static struct consumer *registered(lua_State *L)
{
	const struct registration *registration = bind_self(L, REGISTRATION_TYPE, "registration");
	return consumer_find(registration->script, registration->id);
}

static int l_registration_synced(lua_State *L)
{
	const struct consumer *consumer = registered(L);
	lua_pushboolean(L, consumer && consumer_has_synced(consumer));
	return 1;
}

static int l_registration_remove(lua_State *L)
{
	struct consumer *consumer = registered(L);
	if (consumer)
		consumer_remove(consumer);
	return 0;
}

static const luaL_Reg registration_methods[] = {
    {"has_synced", l_registration_synced}, {"remove", l_registration_remove}, {NULL, NULL}};

void bind_handler_open(lua_State *L)
{
	bind_type(L, REGISTRATION_TYPE, "registration", registration_methods, NULL, NULL);
}
