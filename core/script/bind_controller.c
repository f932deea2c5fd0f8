/* bind_controller: what k8s.controller (lua/perilune/controller.lua) is built on, and the handle that it returns. */
#include <lauxlib.h>
#include <math.h>

#include "script/bind_informer.h"
#include "script/bind_key.h"
#include "script/hook.h"
#include "script/host_private.h"
#include "script/library.h"
#include "script/reconciler.h"

#define CONTROLLER_TYPE "perilune.controller"

/* --- sources --- */

static struct hook *new_hook(lua_State *L, int source, const char *name, enum hook_kind kind)
{
	lua_getfield(L, source, name);
	struct hook *hook = lua_isnil(L, -1) ? NULL : hook_new(L, lua_gettop(L), kind);
	lua_pop(L, 1);
	return hook;
}

static struct fields *new_fields(lua_State *L, int source)
{
	struct err err;
	size_t count;
	const char *const *paths = bind_strings_option(L, source, "fields", &count);
	struct fields *fields = paths ? fields_new(paths, count, &err) : NULL;
	if (paths && !fields)
		bind_misuse(L, "k8s.controller: %s", err.message);
	lua_settop(L, source);
	return fields;
}

static enum source_kind read_kind(lua_State *L, int source)
{
	static const char *const names[] = {"watch", "owns", "map", NULL};
	lua_getfield(L, source, "type");
	enum source_kind kind = (enum source_kind)luaL_checkoption(L, -1, NULL, names);
	lua_pop(L, 1);
	return kind;
}

static const struct handle *read_informer(lua_State *L, int source)
{
	lua_getfield(L, source, "informer");
	const struct handle *handle = bind_informer_at(L, lua_gettop(L));
	luaL_argcheck(L, handle, 1, "an informer");
	lua_pop(L, 1);
	return handle;
}

/* The source described by the table on top of the stack, { type =, informer =, when =, fields =, only_labels =, map =,
 * controller = }. It is the reconciler's before its functions are, which may raise. */
static void add_source(lua_State *L, struct reconciler *reconciler)
{
	int source = lua_gettop(L);
	const struct handle *handle = read_informer(L, source);
	struct reconciler_source options = {.kind = read_kind(L, source),
					    .factory = handle->factory,
					    .informer = handle->informer,
					    .any_owner = !bind_bool_option(L, source, "controller", true),
					    .only_labels = bind_bool_option(L, source, "only_labels", false),
					    .resync = handle->resync};
	struct reconciler_source *added = reconciler_add_source(reconciler, &options);
	added->seen = new_fields(L, source);
	added->passes = new_hook(L, source, "when", HOOK_PREDICATE);
	added->map = new_hook(L, source, "map", HOOK_MAP);
}

static void add_sources(lua_State *L, struct reconciler *reconciler)
{
	lua_getfield(L, 1, "sources");
	int list = lua_gettop(L);
	for (int i = 1, count = (int)lua_objlen(L, list); i <= count; i++) {
		lua_rawgeti(L, list, i);
		add_source(L, reconciler);
		lua_settop(L, list);
	}
}

/* --- the controller --- */

static struct reconciler **push_handle(lua_State *L)
{
	struct reconciler **handle = lua_newuserdata(L, sizeof(struct reconciler *));
	*handle = NULL;
	luaL_getmetatable(L, CONTROLLER_TYPE);
	lua_setmetatable(L, -2);
	return handle;
}

static const struct informer *read_primary(lua_State *L)
{
	lua_getfield(L, 1, "primary");
	const struct handle *handle = bind_informer_at(L, lua_gettop(L));
	luaL_argcheck(L, handle, 1, "an informer");
	lua_pop(L, 1);
	return handle->informer;
}

/* new{ name=, primary=, sources=, workers=, timeout=, base=, max=, qps=, burst=, leader=, finalizes=, reconcile= }, all
 * of it checked by controller.lua. */
static int l_new(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	struct script *script = bind_registering(L);
	struct reconciler_options options = {.name = bind_string_option(L, 1, "name"),
					     .primary = (struct informer *)read_primary(L),
					     .workers = (unsigned)bind_number_option(L, 1, "workers", 1),
					     .timeout = bind_number_option(L, 1, "timeout", 0),
					     .base = bind_number_option(L, 1, "base", 0),
					     .max = bind_number_option(L, 1, "max", 0),
					     .qps = bind_number_option(L, 1, "qps", 0),
					     .burst = (unsigned)bind_number_option(L, 1, "burst", 0),
					     .leader = bind_bool_option(L, 1, "leader", false),
					     .finalizes = bind_bool_option(L, 1, "finalizes", false)};
	if (reconciler_find(script, options.name))
		return bind_misuse(L, "k8s.controller: there is a controller '%s' already", options.name);
	struct reconciler **handle = push_handle(L);
	lua_getfield(L, 1, "reconcile");
	options.function = bind_function(L, lua_gettop(L), "k8s.controller");
	*handle = reconciler_new(script, &options);
	add_sources(L, *handle);
	lua_settop(L, 2);
	script_open_ready(script);
	return 1;
}

/* informer(value): { label_selector =, field_selector =, apiVersion =, kind =, keeps_finalizers = } of an informer; nil
 * when it is none. */
static int l_informer(lua_State *L)
{
	const struct handle *handle = bind_informer_at(L, 1);
	if (!handle)
		return 0;
	const char *const fields[][2] = {{"label_selector", informer_label_selector(handle->informer)},
					 {"field_selector", informer_field_selector(handle->informer)},
					 {"apiVersion", informer_api_version(handle->informer)},
					 {"kind", informer_kind(handle->informer)}};
	lua_createtable(L, 0, 5);
	lua_pushboolean(L, informer_keeps_finalizers(handle->informer));
	lua_setfield(L, -2, "keeps_finalizers");
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		lua_pushstring(L, fields[i][1]);
		lua_setfield(L, -2, fields[i][0]);
	}
	return 1;
}

/* terminal_err(message): the err that k8s.terminal raises. */
static int l_terminal_err(lua_State *L)
{
	struct err err;
	err_set(&err, "Terminal", "%s", luaL_checkstring(L, 1));
	bind_err_push(L, &err, (struct json_slice){NULL, 0});
	return 1;
}

static const luaL_Reg core[] = {
    {"new", l_new}, {"informer", l_informer}, {"terminal_err", l_terminal_err}, {NULL, NULL}};

/* --- the handle --- */

static double read_after(lua_State *L)
{
	static const char *const known[] = {"after", NULL};
	if (lua_isnoneornil(L, 3))
		return 0;
	bind_check_options(L, 3, "enqueue", known);
	return bind_number_option(L, 3, "after", 0);
}

/* controller:enqueue(reference, { after = seconds }). */
static int l_enqueue(lua_State *L)
{
	struct reconciler *reconciler = *(struct reconciler **)bind_self(L, CONTROLLER_TYPE, "controller");
	struct err err;
	if (!bind_key_is_reference(L, 2))
		return bind_misuse(L, "enqueue takes a reference { namespace =, name = } or an object");
	double after = read_after(L);
	struct buf *key = &state_of(L)->scratch;
	buf_reset(key);
	if (bind_key_of(L, 2, reconciler_primary(reconciler), key, &err) < 0)
		return bind_misuse(L, "enqueue: %s", err.message);
	struct controller *controller = reconciler_controller(reconciler);
	if (after > 0)
		controller_add_after(controller, buf_text(key), key->length, after);
	else
		controller_add(controller, buf_text(key), key->length, WORK_HIGH, NULL);
	return 0;
}

static int l_tostring(lua_State *L)
{
	struct reconciler *reconciler = *(struct reconciler **)bind_self(L, CONTROLLER_TYPE, "controller");
	lua_pushfstring(L, "controller %s", controller_name(reconciler_controller(reconciler)));
	return 1;
}

static const luaL_Reg methods[] = {{"enqueue", l_enqueue}, {NULL, NULL}};

/* controller.lua gets (k8s, core, the client's core) and adds its functions to k8s. */
void bind_controller_open(lua_State *L)
{
	bind_type(L, CONTROLLER_TYPE, "controller", methods, NULL, l_tostring);
	lua_pushvalue(L, -1);
	lua_newtable(L);
	luaL_register(L, NULL, core);
	bind_client_push_core(L);
	library_run(L, "perilune.controller", 3);
}
