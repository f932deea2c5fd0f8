/* bind_transform: a script's function as the transform of its informer. JSON becomes a table, which the function
 * changes, and JSON again. */
#include <lauxlib.h>

#include "base/alloc.h"
#include "script/bind_informer.h"
#include "script/hook.h"
#include "script/value.h"

struct transforming {
	struct hook *hook;
	char *name;                /* "init.lua:12: the transform" */
	struct informer *informer; /* borrowed: whose it is; NULL until it is known */
};

struct conversion {
	struct json_slice object;
	struct buf *out;
};

static int push_object(lua_State *L, void *data)
{
	value_push(L, ((struct conversion *)data)->object);
	return 1;
}

static int read_object(lua_State *L, int index, void *data, struct err *err)
{
	if (!lua_istable(L, index))
		return err_set(err, "", "the transform returned %s, not the object that the cache is to hold",
			       lua_isnil(L, index) ? "nothing" : luaL_typename(L, index));
	if (value_encode(L, index, ((struct conversion *)data)->out, err))
		return err_prefix(err, "what the transform returned");
	return 0;
}

static int run(void *data, struct json_slice object, struct buf *out, struct err *err)
{
	struct transforming *transforming = data;
	struct conversion conversion = {object, out};
	struct hook_call call = {push_object, read_object, &conversion};
	return hook_call(transforming->hook, &call, err);
}

static void on_error(void *data, const struct err *err, const struct object *object)
{
	const struct transforming *transforming = data;
	hook_failed(transforming->hook, err, transforming->informer, object);
}

static void free_transforming(void *data)
{
	struct transforming *transforming = data;
	hook_free(transforming->hook);
	alloc_free(transforming->name);
	alloc_free(transforming);
}

struct transform *bind_transform_new(lua_State *L, int index, struct transforming **out)
{
	struct hook *hook = hook_new(L, index, HOOK_TRANSFORM);
	struct transforming *transforming = alloc_zero(sizeof(*transforming));
	transforming->hook = hook;
	transforming->name = alloc_format("%s: the transform", hook_place(hook));
	struct transform_options options = {
	    .name = transforming->name,
	    .identity = lua_topointer(L, index),
	    .run = run,
	    .on_error = on_error,
	    .free = free_transforming,
	    .data = transforming,
	};
	*out = transforming;
	return transform_new(&options);
}

void bind_transform_serve(struct transforming *transforming, struct informer *informer)
{
	transforming->informer = informer;
}
