/* bind_cache: what a handle reads of its informer's cache: get, list, keys and count. */
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cache/selection.h"
#include "script/bind_informer.h"
#include "script/bind_key.h"
#include "script/limit.h"
#include "script/value.h"

/* For what reads the cache: that it holds less than the truth is said once. */
static struct handle *check_readable(lua_State *L, const char *method)
{
	struct handle *handle = bind_informer_self(L);
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

/* The text of an argument, which must be a string. */
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
int bind_cache_get(lua_State *L)
{
	struct handle *handle = check_readable(L, "get");
	const char *namespace = NULL, *name;
	if (lua_istable(L, 2)) {
		namespace = bind_key_push_field(L, 2, "namespace");
		name = bind_key_push_field(L, 2, "name");
		if (!name)
			bind_misuse(L, "get: a reference needs a name");
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

/* What list was asked for. What it owns is freed by end_query, on every way out. */
struct query {
	struct selection *selection; /* NULL: all */
	struct fields *fields;
	struct object **found; /* borrowed from the store, which does not change meanwhile */
	size_t count, capacity;
	const char *namespace;
};

static bool is_in(const struct object *object, const char *namespace)
{
	size_t length;
	const char *text = object_namespace(object, &length);
	return strlen(namespace) == length && !memcmp(text, namespace, length);
}

static bool matches(struct query *query, const struct object *object)
{
	if (query->namespace && !is_in(object, query->namespace))
		return false;
	return !query->selection || selection_has(query->selection, object);
}

static bool on_object(void *data, struct object *object)
{
	struct query *query = data;
	if (limit_is_over())
		return false;
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
	limit_check(L);
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
	selection_free(query->selection);
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
	if (!bind_index_push(L, 2))
		return false;
	lua_pushnil(L);
	if (!lua_next(L, -2) || !(index->name = bind_text(L, -2, "index")))
		bind_misuse(L, "list: index is { name = value }");
	if (!store_has_index(informer_store(handle->informer), bind_index_name(L, handle, index->name)))
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
	struct state *state = state_of(L);
	state->inside = L; /* functions may have to file what was there when the index came */
	store_each_index(informer_store(handle->informer), bind_index_name(L, handle, index->name), index->value,
			 index->length, on_object, query);
	state->inside = NULL;
}

int bind_cache_list(lua_State *L)
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
		failed = !(query.selection = selection_new(selector, &err));
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

struct keys {
	lua_State *L; /* their table is on top */
	int count;
};

static bool push_key(void *data, struct object *object)
{
	struct keys *keys = data;
	size_t length;
	const char *key = object_key(object, &length);
	lua_pushlstring(keys->L, key, length);
	lua_rawseti(keys->L, -2, ++keys->count);
	limit_check(keys->L);
	return true;
}

int bind_cache_keys(lua_State *L)
{
	struct handle *handle = check_readable(L, "keys");
	const struct store *store = informer_store(handle->informer);
	struct keys keys = {L, 0};
	lua_createtable(L, (int)store_count(store), 0);
	store_each(store, NULL, push_key, &keys);
	value_mark_array(L, -1);
	return 1;
}

int bind_cache_count(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)store_count(informer_store(check_readable(L, "count")->informer)));
	return 1;
}
