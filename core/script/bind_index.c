/* bind_index: the option `index` and informer:add_index: what a script's objects are filed under, by a path or by a
 * function. */
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "script/bind_informer.h"
#include "script/hook.h"
#include "script/host_private.h"

ALLOC_TYPE(index_type, "script index");

struct script_index {
	struct list node; /* in script->indexes */
	struct script *script;
	struct informer *informer; /* borrowed: its end is this one's, too */
	char *name;
	char *source;               /* the path, or which function it is */
	struct hook *hook;          /* NULL over a path */
	struct store_index_fn path; /* where there is no hook */
	bool filing;                /* not all of what was there is in it yet */
	struct loop_job job;        /* files some more */
};

static struct script_index *find(const struct script *script, const struct informer *informer, const char *name)
{
	LIST_EACH (&script->indexes, node) {
		struct script_index *index = LIST_ENTRY(node, struct script_index, node);
		if (index->informer == informer && !strcmp(index->name, name))
			return index;
	}
	return NULL;
}

static const char *full_name(struct script *script, const struct informer *informer, const char *name)
{
	struct buf *full = &script->state->scratch;
	buf_reset(full);
	buf_append_format(full, "%p\n%p\n%s", (void *)script, (const void *)informer, name);
	return buf_text(full);
}

const char *bind_index_name(lua_State *L, const struct handle *handle, const char *name)
{
	return full_name(script_of(L), handle->informer, name);
}

/* --- what an object is filed under --- */

struct filing {
	const struct object *object;
	store_emit_fn emit;
	void *emit_data;
};

static int push_object(lua_State *L, void *data)
{
	bind_object_push(L, ((struct filing *)data)->object, NULL);
	return 1;
}

static void emit_string(lua_State *L, int index, const struct filing *filing)
{
	size_t length;
	const char *text = lua_tolstring(L, index, &length);
	filing->emit(filing->emit_data, text, length);
}

static int check_list(lua_State *L, int list, struct err *err)
{
	for (lua_pushnil(L); lua_next(L, list); lua_pop(L, 1)) {
		const char *odd = lua_type(L, -2) != LUA_TNUMBER   ? "names for keys"
				  : lua_type(L, -1) != LUA_TSTRING ? luaL_typename(L, -1)
								   : NULL;
		if (odd)
			return err_set(err, "", "the index function returned a table with %s in it, not strings alone",
				       odd);
	}
	return 0;
}

/* All is looked at before anything is filed: an object is under all that was returned, or under nothing. */
static int read_values(lua_State *L, int index, void *data, struct err *err)
{
	const struct filing *filing = data;
	if (lua_isnil(L, index))
		return 0;
	if (lua_type(L, index) == LUA_TSTRING) {
		emit_string(L, index, filing);
		return 0;
	}
	if (!lua_istable(L, index))
		return err_set(err, "", "the index function returned a %s, not a string, a list of strings or nothing",
			       luaL_typename(L, index));
	if (check_list(L, index, err))
		return -1;
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
		emit_string(L, lua_gettop(L), filing);
	return 0;
}

static void values(void *data, struct object *object, store_emit_fn emit, void *emit_data)
{
	const struct script_index *index = data;
	struct filing filing = {object, emit, emit_data};
	struct hook_call call = {push_object, read_values, &filing};
	struct err err;
	if (!index->hook)
		index->path.values(index->path.data, object, emit, emit_data);
	else if (hook_call(index->hook, &call, &err))
		hook_failed(index->hook, &err, index->informer, object);
}

/* --- making and ending --- */

static void free_index(void *data)
{
	struct script_index *index = data;
	list_remove(&index->node);
	loop_job_cancel(&index->job);
	index->script->registered--;
	hook_free(index->hook);
	if (index->path.free)
		index->path.free(index->path.data);
	alloc_free(index->name);
	alloc_free(index->source);
	alloc_object_free(&index_type, index);
}

void bind_index_end_all(struct script *script)
{
	while (!list_is_empty(&script->indexes)) {
		const struct script_index *index = LIST_ENTRY(script->indexes.next, struct script_index, node);
		store_remove_index(informer_store(index->informer), full_name(script, index->informer, index->name));
	}
}

static void on_turn(void *data)
{
	struct script_index *index = data;
	char *name = alloc_string(full_name(index->script, index->informer, index->name));
	index->filing = !store_file_index(informer_store(index->informer), name, loop_until(index->script->loop));
	alloc_free(name);
	if (index->filing)
		loop_post(index->script->loop, &index->job);
	else
		host_settled(index->script->host);
}

bool bind_index_all_filed(const struct script *script)
{
	LIST_EACH (&script->indexes, node)
		if (LIST_ENTRY(node, struct script_index, node)->filing)
			return false;
	return true;
}

static void add_to_store(struct script_index *index)
{
	struct store_index_fn fn = {.values = values, .free = free_index, .data = index, .owner = index->informer};
	index->filing = true;
	loop_job_init(&index->job, on_turn, index);
	loop_post(index->script->loop, &index->job);
	store_add_index(informer_store(index->informer), full_name(index->script, index->informer, index->name), fn);
}

/* The value at the top of the stack: a path or a function. */
static void make_index(lua_State *L, const struct handle *handle, const char *name, const char *source)
{
	struct err err;
	struct script *script = bind_registering(L);
	struct hook *hook = lua_isfunction(L, -1) ? hook_new(L, lua_gettop(L), HOOK_INDEX) : NULL;
	struct json_path *path = hook ? NULL : json_path_new(source, &err);
	if (!hook && !path)
		bind_misuse(L, "index '%s': %s", name, err.message);
	struct script_index *index = alloc_object(&index_type, sizeof(*index));
	index->script = script;
	index->informer = handle->informer;
	index->name = alloc_string(name);
	index->source = alloc_string(source);
	index->hook = hook;
	if (path)
		index->path = store_path_index(path);
	script->registered++;
	list_add_tail(&script->indexes, &index->node);
	add_to_store(index);
}

/* The value at the top of the stack. */
static void add_index(lua_State *L, const struct handle *handle, const char *name)
{
	char function[40];
	const char *source = bind_text(L, -1, "index");
	if (lua_isfunction(L, -1)) {
		snprintf(function, sizeof(function), "function %p", lua_topointer(L, -1));
		source = function;
	}
	if (!name || !source)
		bind_misuse(L, "an index is name = \"path\" or a function, such as { node = \"spec.nodeName\" }");
	const struct script_index *before = find(script_of(L), handle->informer, name);
	if (!before)
		make_index(L, handle, name, source);
	else if (strcmp(before->source, source) != 0)
		bind_misuse(L, "index '%s' of %s is there already, over another path or function", name,
			    informer_label(handle->informer));
}

void bind_index_add(lua_State *L, int index, const struct handle *handle)
{
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
		add_index(L, handle, bind_text(L, -2, "index"));
}

int bind_index_method(lua_State *L)
{
	struct handle *handle = bind_informer_self(L);
	hook_refuse(L, "informer:add_index");
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
