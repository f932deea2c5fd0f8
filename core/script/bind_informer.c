/* bind_informer: k8s.informer, and the handle that it returns. */
#include "script/bind_informer.h"

#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(leaving_type, "leaving informer");

#define INFORMER_TYPE "perilune.informer"

struct handle *bind_informer_self(lua_State *L)
{
	return bind_self(L, INFORMER_TYPE, "informer");
}

struct handle *bind_informer_at(lua_State *L, int index)
{
	return bind_userdata(L, index, INFORMER_TYPE);
}

/* --- options to a spec --- */

static int read_page_size(lua_State *L, int index)
{
	double size = bind_number_option(L, index, "page_size", 0);
	if (size != floor(size))
		bind_misuse(L, "informer: page_size is a whole number of objects, or 0 for the usual one");
	return (int)fmin(size, INT_MAX);
}

static bool read_raw(lua_State *L, int index)
{
	const char *cache = bind_string_option(L, index, "cache");
	if (cache && strcmp(cache, "compressed") != 0 && strcmp(cache, "raw") != 0)
		bind_misuse(L, "informer: cache is \"compressed\" or \"raw\", not \"%s\"", cache);
	return cache && strcmp(cache, "raw") == 0;
}

static void read_spec(lua_State *L, int index, const struct script_factory *factory, struct informer_spec *spec)
{
	static const char *const known[] = {"apiVersion",     "kind",           "resource",      "namespace",
					    "label_selector", "field_selector", "metadata_only", "drop",
					    "keep",           "transform",      "index",         "resync",
					    "page_size",      "cache",          "optional",      NULL};
	bind_check_options(L, index, "informer", known);
	memset(spec, 0, sizeof(*spec));
	spec->api_version = bind_string_option(L, index, "apiVersion");
	spec->kind = bind_string_option(L, index, "kind");
	spec->resource = bind_string_option(L, index, "resource");
	if (!spec->api_version || (!spec->kind && !spec->resource))
		bind_misuse(L, "informer: apiVersion and kind (or resource) are needed, such as { apiVersion = \"v1\", "
			       "kind = \"Pod\" }");
	spec->namespaces = bind_strings_option(L, index, "namespace", &spec->namespace_count);
	if (spec->namespaces && spec->namespace_count == 0)
		bind_misuse(L, "informer: namespace is an empty list; leave it out to watch all namespaces");
	if (!spec->namespaces && factory->namespace) {
		spec->namespaces = (const char *const *)&factory->namespace;
		spec->namespace_count = 1;
	}
	spec->label_selector = bind_string_option(L, index, "label_selector");
	spec->field_selector = bind_string_option(L, index, "field_selector");
	spec->drop = bind_strings_option(L, index, "drop", &spec->drop_count);
	spec->drop_given = spec->drop != NULL;
	spec->keep = bind_strings_option(L, index, "keep", &spec->keep_count);
	spec->metadata_only = bind_bool_option(L, index, "metadata_only", false);
	spec->optional = bind_bool_option(L, index, "optional", false);
	spec->page_size = read_page_size(L, index);
	spec->raw = read_raw(L, index);
}

bool bind_informer_push_transform(lua_State *L, int options)
{
	lua_pushliteral(L, "transform");
	lua_rawget(L, options);
	bool none = lua_isnil(L, -1) || (lua_isboolean(L, -1) && !lua_toboolean(L, -1));
	if (!none && !lua_isfunction(L, -1))
		bind_misuse(L, "option 'transform' must be a function, or false for none, not a %s",
			    luaL_typename(L, -1));
	return !none;
}

double bind_resync_option(lua_State *L, int options, const char *what, double fallback)
{
	double resync = bind_number_option(L, options, "resync", fallback);
	if (resync > 0 && resync < 1)
		bind_misuse(L, "%s: resync is at least 1 second, or 0 for none", what);
	return resync;
}

/* --- the handle --- */

/* The transform, where there is one, goes with a new informer; one that is there has the same already. Nothing raises
 * while it is neither's. */
static struct informer *find_informer(lua_State *L, struct script_factory *factory, int options,
				      struct informer_spec *spec, struct err *err)
{
	struct transforming *transforming = NULL;
	if (bind_informer_push_transform(L, options))
		spec->transform = bind_transform_new(L, lua_gettop(L), &transforming);
	struct informer *informer = script_factory_informer(factory, spec, err);
	if (transforming)
		bind_transform_serve(transforming, informer);
	transform_unref(spec->transform);
	lua_pop(L, 1);
	return informer;
}

void bind_informer_push(lua_State *L, struct script_factory *factory, int options)
{
	struct informer_spec spec;
	struct err err;
	bind_defaults_add(L, factory->defaults, options);
	read_spec(L, options, factory, &spec);
	double resync = bind_resync_option(L, options, "informer", 0);
	struct handle *handle = lua_newuserdata(L, sizeof(*handle));
	memset(handle, 0, sizeof(*handle));
	luaL_getmetatable(L, INFORMER_TYPE);
	lua_setmetatable(L, -2);
	bind_registering(L);
	struct informer *informer = find_informer(L, factory, options, &spec, &err);
	if (!informer)
		bind_misuse(L, "informer: %s", err.message);
	handle->factory = factory;
	handle->informer = informer_ref(informer);
	handle->resync = resync;
	if (bind_index_push(L, options))
		bind_index_add(L, lua_gettop(L), handle);
	lua_pop(L, 1);
}

static int l_informer(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	struct script_factory *factory = script_default_factory(script_of(L));
	bind_informer_push(L, factory, 1);
	if (factory->script->started) /* nobody else would start what is asked for later */
		script_factory_start(factory);
	return 1;
}

/* An informer whose handle was collected inside a hook: its end takes indexes out of a store that may be in the middle
 * of calling them. */
struct leaving {
	struct list node; /* in script->leaving */
	struct loop_job job;
	struct informer *informer;
};

static void leave(void *data)
{
	struct leaving *leaving = data;
	list_remove(&leaving->node);
	loop_job_cancel(&leaving->job);
	informer_unref(leaving->informer);
	alloc_object_free(&leaving_type, leaving);
}

static void leave_later(struct script *script, struct informer *informer)
{
	struct leaving *leaving = alloc_object(&leaving_type, sizeof(*leaving));
	leaving->informer = informer;
	loop_job_init(&leaving->job, leave, leaving);
	list_add_tail(&script->leaving, &leaving->node);
	loop_post(script->loop, &leaving->job);
}

void bind_informer_end_all(struct script *script)
{
	while (!list_is_empty(&script->leaving))
		leave(LIST_ENTRY(script->leaving.next, struct leaving, node));
}

/* Not by way of state_of: when the state is closed, it has its own allocator back. */
static int l_gc(lua_State *L)
{
	struct handle *handle = bind_informer_self(L);
	if (handle->informer && handle->factory->script->state->hook)
		leave_later(handle->factory->script, handle->informer);
	else
		informer_unref(handle->informer);
	handle->informer = NULL;
	return 0;
}

static int l_tostring(lua_State *L)
{
	lua_pushfstring(L, "informer %s", informer_label(bind_informer_self(L)->informer));
	return 1;
}

static int l_has_synced(lua_State *L)
{
	lua_pushboolean(L, informer_has_synced(bind_informer_self(L)->informer));
	return 1;
}

/* A text; a table by namespace where there are several. */
static int l_resource_version(lua_State *L)
{
	struct informer *informer = bind_informer_self(L)->informer;
	size_t count = informer_namespace_count(informer);
	if (count < 2) {
		lua_pushstring(L, informer_version(informer, 0));
		return 1;
	}
	lua_newtable(L);
	for (size_t i = 0; i < count; i++) {
		lua_pushstring(L, informer_version(informer, i));
		lua_setfield(L, -2, informer_namespace(informer, i));
	}
	return 1;
}

static const luaL_Reg informer_methods[] = {{"get", bind_cache_get},
					    {"list", bind_cache_list},
					    {"keys", bind_cache_keys},
					    {"count", bind_cache_count},
					    {"has_synced", l_has_synced},
					    {"resource_version", l_resource_version},
					    {"add_index", bind_index_method},
					    {"add_event_handler", bind_handler_add},
					    {NULL, NULL}};

void bind_informer_open(lua_State *L)
{
	bind_type(L, INFORMER_TYPE, "informer", informer_methods, l_gc, l_tostring);
	bind_handler_open(L);
	lua_pushcfunction(L, l_informer);
	lua_setfield(L, -2, "informer");
}
