/* bind_informer: k8s.informer, the informer's handle and the registration that add_event_handler returns. */
#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strmap.h"
#include "kube/selector.h"
#include "script/bind.h"
#include "script/consumer.h"
#include "script/value.h"

#define INFORMER_TYPE "perilune.informer"
#define REGISTRATION_TYPE "perilune.registration"

struct handle {
	struct script_factory *factory;
	struct informer *informer; /* counted */
	double resync;             /* the default of its handlers */
	bool warned;               /* that it was read before it had synced */
};

struct registration {
	struct script *script;
	unsigned id; /* the consumer's; it may be gone */
};

static struct handle *check_handle(lua_State *L)
{
	return bind_self(L, INFORMER_TYPE, "informer");
}

/* For what reads the cache: that it holds less than the truth is said once. */
static struct handle *check_readable(lua_State *L, const char *method)
{
	struct handle *handle = check_handle(L);
	if (handle->warned || informer_has_synced(handle->informer))
		return handle;
	handle->warned = true;
	const struct script *script = handle->factory->script;
	log_warn(LOG_FIELDS({"script", script->name}, {"informer", informer_label(handle->informer)}),
		 "informer:%s reads a cache that %s", method,
		 script->started
		     ? "has not synced yet (informer:has_synced tells)"
		     : "is filled only after the script has loaded: read it in a handler or in k8s.on_synced");
	return handle;
}

/* --- options to a spec --- */

static void read_spec(lua_State *L, int index, const struct script_factory *factory, struct informer_spec *spec)
{
	static const char *const known[] = {
	    "apiVersion",     "kind",          "resource", "namespace", "label_selector",
	    "field_selector", "metadata_only", "drop",     "keep",      "index",
	    "resync",         "page_size",     NULL};
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
	if (!spec->label_selector)
		spec->label_selector = factory->label_selector;
	if (!spec->field_selector)
		spec->field_selector = factory->field_selector;
	spec->drop = bind_strings_option(L, index, "drop", &spec->drop_count);
	spec->drop_given = spec->drop != NULL;
	spec->keep = bind_strings_option(L, index, "keep", &spec->keep_count);
	if (!spec->drop && !spec->keep && factory->drop) {
		spec->drop = (const char *const *)factory->drop;
		spec->drop_given = true;
		while (factory->drop[spec->drop_count])
			spec->drop_count++;
	}
	spec->metadata_only = bind_bool_option(L, index, "metadata_only", false);
	spec->page_size = (int)fmin(bind_number_option(L, index, "page_size", 0), INT_MAX);
}

/* --- indexes --- */

/* Indexes are the script's own: the shared store knows them under its file. Borrowed from the state's scratch. */
static const char *index_name(lua_State *L, const char *name)
{
	struct buf *full = &state_of(L)->scratch;
	buf_reset(full);
	buf_append_format(full, "%s\n%s", script_of(L)->path, name);
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
	bool added = store_add_index(informer_store(handle->informer), index_name(L, name), fn) == 0;
	if (!added)
		fn.free(fn.data);
	if (!note_index(script_of(L), handle->informer, name, text, added))
		bind_misuse(L, "index '%s' of %s is there already, over another path", name,
			    informer_label(handle->informer));
}

static void add_indexes(lua_State *L, int index, const struct handle *handle)
{
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		const char *name = bind_text(L, -2, "index"), *path = bind_text(L, -1, "index");
		if (!name || !path)
			bind_misuse(L, "an index is name = \"path\", such as { node = \"spec.nodeName\" }");
		add_index(L, handle, name, path);
	}
}

static int l_add_index(lua_State *L)
{
	struct handle *handle = check_handle(L);
	luaL_checktype(L, 2, LUA_TTABLE);
	add_indexes(L, 2, handle);
	return 0;
}

/* Pushes the option `index`. False when it is nil. */
static bool push_index(lua_State *L, int options)
{
	lua_pushliteral(L, "index");
	lua_rawget(L, options);
	if (!lua_isnil(L, -1) && !lua_istable(L, -1))
		bind_misuse(L, "option 'index' must be a table, not a %s", luaL_typename(L, -1));
	return lua_istable(L, -1);
}

/* --- the handle --- */

void bind_informer_push(lua_State *L, struct script_factory *factory, int options)
{
	struct informer_spec spec;
	struct err err;
	read_spec(L, options, factory, &spec);
	double resync = bind_number_option(L, options, "resync", factory->resync);
	if (resync > 0 && resync < 1)
		bind_misuse(L, "informer: resync is at least 1 second, or 0 for none");
	struct handle *handle = lua_newuserdata(L, sizeof(*handle));
	memset(handle, 0, sizeof(*handle));
	luaL_getmetatable(L, INFORMER_TYPE);
	lua_setmetatable(L, -2);
	bind_registering(L);
	struct informer *informer = script_factory_informer(factory, &spec, &err);
	if (!informer)
		bind_misuse(L, "informer: %s", err.message);
	handle->factory = factory;
	handle->informer = informer_ref(informer);
	handle->resync = resync;
	if (push_index(L, options))
		add_indexes(L, lua_gettop(L), handle);
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

static int l_gc(lua_State *L)
{
	struct handle *handle = check_handle(L);
	informer_unref(handle->informer);
	handle->informer = NULL;
	return 0;
}

static int l_tostring(lua_State *L)
{
	lua_pushfstring(L, "informer %s", informer_label(check_handle(L)->informer));
	return 1;
}

/* --- reading --- */

/* A text at a reference's own field or in its metadata, kept on the stack; NULL when there is none. */
static const char *push_reference_field(lua_State *L, int index, const char *name)
{
	lua_getfield(L, index, name);
	if (lua_isnil(L, -1)) {
		lua_getfield(L, index, "metadata");
		if (lua_istable(L, -1))
			lua_getfield(L, -1, name);
	}
	return bind_text(L, -1, name);
}

/* The same for an argument, which must be a string. */
static const char *check_name(lua_State *L, int index, const char *what)
{
	luaL_checktype(L, index, LUA_TSTRING);
	return bind_text(L, index, what);
}

static const char *only_namespace(lua_State *L, const struct handle *handle, const char *name)
{
	const struct resource *resource = informer_resource(handle->informer);
	if (!resource || !resource->namespaced)
		return "";
	if (informer_namespace_count(handle->informer) != 1)
		bind_misuse(L, "%s is namespaced: get(namespace, \"%s\")", informer_kind(handle->informer), name);
	return informer_namespace(handle->informer, 0);
}

/* get(namespace, name), get(name) or get(reference). */
static int l_get(lua_State *L)
{
	struct handle *handle = check_readable(L, "get");
	const char *namespace = NULL, *name;
	if (lua_istable(L, 2)) {
		namespace = push_reference_field(L, 2, "namespace");
		name = push_reference_field(L, 2, "name");
		luaL_argcheck(L, name, 2, "a reference needs a name");
	} else if (lua_isnoneornil(L, 3)) {
		name = check_name(L, 2, "name");
	} else {
		namespace = lua_isnil(L, 2) ? "" : check_name(L, 2, "namespace");
		name = check_name(L, 3, "name");
	}
	const char *where = namespace ? namespace : only_namespace(L, handle, name);
	const struct object *object = store_get(informer_store(handle->informer), where, name);
	if (!object)
		return 0;
	bind_object_push(L, object, NULL);
	return 1;
}

/* What list was asked for. fields, selector and found are freed by end_query, on every way out. */
struct query {
	struct selector *selector;
	struct fields *fields;
	struct object **found; /* borrowed from the store, which does not change meanwhile */
	size_t count, capacity;
	const char *namespace;
};

static bool matches(const struct query *query, const struct object *object)
{
	if (query->namespace && strcmp(object_namespace(object), query->namespace) != 0)
		return false;
	if (!query->selector)
		return true;
	struct buf scratch;
	struct json_meta meta;
	buf_init(&scratch, 0);
	bool result =
	    json_meta(object_open(object, &scratch), &meta) == 0 && selector_matches(query->selector, meta.labels);
	buf_fini(&scratch);
	return result;
}

static bool on_object(void *data, struct object *object)
{
	struct query *query = data;
	if (!matches(query, object))
		return true;
	if (query->count == query->capacity) {
		query->capacity = query->capacity ? query->capacity * 2 : 64;
		query->found = alloc_resize(query->found, query->capacity * sizeof(*query->found));
	}
	query->found[query->count++] = object;
	return true;
}

static int push_found(lua_State *L)
{
	struct query *query = lua_touserdata(L, 1);
	lua_createtable(L, (int)query->count, 0);
	for (size_t i = 0; i < query->count; i++) {
		bind_object_push(L, query->found[i], query->fields);
		lua_rawseti(L, -2, (int)i + 1);
	}
	value_mark_array(L, -1);
	return 1;
}

static void end_query(struct query *query)
{
	selector_free(query->selector);
	fields_unref(query->fields);
	alloc_free(query->found);
}

/* Where list keeps push_found: making a function may raise, and once the query has memory nothing may. */
#define PUSH_FOUND 3

/* The C memory of the query is freed whether or not decoding raises. */
static int finish_query(lua_State *L, struct query *query)
{
	lua_pushvalue(L, PUSH_FOUND);
	lua_pushlightuserdata(L, query);
	int status = lua_pcall(L, 1, 1, 0);
	end_query(query);
	if (status)
		return lua_error(L);
	return 1;
}

struct index_query {
	const char *name, *value; /* borrowed from the stack */
	size_t length;
};

/* index = { name = value }: one of the script's own. False when it is not given. */
static bool read_index(lua_State *L, const struct handle *handle, struct index_query *index)
{
	if (!push_index(L, 2))
		return false;
	lua_pushnil(L);
	if (!lua_next(L, -2) || !(index->name = bind_text(L, -2, "index")))
		bind_misuse(L, "list: index is { name = value }");
	if (!store_has_index(informer_store(handle->informer), index_name(L, index->name)))
		bind_misuse(L, "list: no index '%s'", index->name);
	if (lua_isboolean(L, -1))
		lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
	else
		lua_pushvalue(L, -1);
	index->value = luaL_checklstring(L, -1, &index->length);
	lua_pushvalue(L, -3);
	if (lua_next(L, -5))
		bind_misuse(L, "list takes one index at a time");
	return true;
}

static void find_indexed(lua_State *L, const struct handle *handle, const struct index_query *index,
			 struct query *query)
{
	store_each_index(informer_store(handle->informer), index_name(L, index->name), index->value, index->length,
			 on_object, query);
}

static int l_list(lua_State *L)
{
	static const char *const known[] = {"namespace", "label_selector", "index", "fields", NULL};
	struct handle *handle = check_readable(L, "list");
	struct query query = {0};
	struct index_query index;
	struct err err;
	lua_settop(L, PUSH_FOUND - 1);
	lua_pushcfunction(L, push_found);
	if (lua_isnil(L, 2)) {
		store_each(informer_store(handle->informer), NULL, on_object, &query);
		return finish_query(L, &query);
	}
	bind_check_options(L, 2, "list", known);
	query.namespace = bind_string_option(L, 2, "namespace");
	const char *selector = bind_string_option(L, 2, "label_selector");
	size_t count;
	const char *const *fields = bind_strings_option(L, 2, "fields", &count);
	bool indexed = read_index(L, handle, &index);
	bool failed = fields && !(query.fields = fields_new(fields, count, &err));
	if (!failed && selector)
		failed = !(query.selector = selector_new(selector, &err));
	if (failed) {
		end_query(&query);
		return bind_misuse(L, "list: %s", err.message);
	}
	if (indexed)
		find_indexed(L, handle, &index, &query);
	else
		store_each(informer_store(handle->informer), query.namespace, on_object, &query);
	return finish_query(L, &query);
}

static bool push_key(void *data, struct object *object)
{
	lua_State *L = data;
	size_t length;
	const char *key = object_key(object, &length);
	lua_pushlstring(L, key, length);
	lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
	return true;
}

static int l_keys(lua_State *L)
{
	struct handle *handle = check_readable(L, "keys");
	lua_newtable(L);
	store_each(informer_store(handle->informer), NULL, push_key, L);
	value_mark_array(L, -1);
	return 1;
}

static int l_count(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)store_count(informer_store(check_readable(L, "count")->informer)));
	return 1;
}

static int l_has_synced(lua_State *L)
{
	lua_pushboolean(L, informer_has_synced(check_handle(L)->informer));
	return 1;
}

/* A text; a table by namespace where there are several. */
static int l_resource_version(lua_State *L)
{
	struct informer *informer = check_handle(L)->informer;
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

/* --- handlers --- */

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
		int reference = luaL_ref(L, LUA_REGISTRYINDEX);
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
	static const char *const names[] = {"add", "update", "delete"};
	bool found = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		lua_getfield(L, 2, names[i]);
		found |= !lua_isnil(L, -1);
		lua_pop(L, 1);
	}
	return found;
}

static int l_add_event_handler(lua_State *L)
{
	static const char *const known[] = {"add", "update", "delete", "fields", "resync", "every_event", NULL};
	struct handle *handle = check_handle(L);
	struct err err;
	size_t count;
	bind_check_options(L, 2, "add_event_handler", known);
	struct consumer_options options = {.factory = handle->factory,
					   .informer = handle->informer,
					   .functions = {LUA_NOREF, LUA_NOREF, LUA_NOREF},
					   .resync = bind_number_option(L, 2, "resync", handle->resync),
					   .every_event = bind_bool_option(L, 2, "every_event", false)};
	if (!has_function(L))
		return bind_misuse(L, "add_event_handler: add, update or delete is missing");
	if (options.resync > 0 && options.resync < 1)
		return bind_misuse(L, "add_event_handler: resync is at least 1 second, or 0 for none");
	if (factory_is_shut_down(handle->factory->factory))
		return bind_misuse(L, "add_event_handler: the factory has been shut down");
	const char *const *fields = bind_strings_option(L, 2, "fields", &count);
	struct registration *registration = push_registration(L);
	push_functions(L);
	take_functions(L, options.functions);
	if (fields && !(options.fields = fields_new(fields, count, &err))) {
		for (int i = 0; i < 3; i++)
			luaL_unref(L, LUA_REGISTRYINDEX, options.functions[i]);
		return bind_misuse(L, "add_event_handler: fields: %s", err.message);
	}
	registration->id = consumer_id(consumer_new(&options));
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

static const luaL_Reg informer_methods[] = {{"get", l_get},
					    {"list", l_list},
					    {"keys", l_keys},
					    {"count", l_count},
					    {"has_synced", l_has_synced},
					    {"resource_version", l_resource_version},
					    {"add_index", l_add_index},
					    {"add_event_handler", l_add_event_handler},
					    {NULL, NULL}};
static const luaL_Reg registration_methods[] = {
    {"has_synced", l_registration_synced}, {"remove", l_registration_remove}, {NULL, NULL}};

void bind_informer_open(lua_State *L)
{
	bind_type(L, INFORMER_TYPE, "informer", informer_methods, l_gc, l_tostring);
	bind_type(L, REGISTRATION_TYPE, "registration", registration_methods, NULL, NULL);
	lua_pushcfunction(L, l_informer);
	lua_setfield(L, -2, "informer");
}
