#include "script/hook.h"

#include <lauxlib.h>
#include <stdio.h>

#include "base/alloc.h"
#include "script/bind.h"
#include "script/call.h"

ALLOC_TYPE(hook_type, "hook");

struct hook {
	struct list node;      /* in script->hooks */
	struct script *script; /* NULL when it has ended */
	enum hook_kind kind;
	int reference; /* the function, in the registry */
	char place[LUA_IDSIZE + 16];
	bool freed; /* by its owner; release is posted */
	struct loop_job release;
};

const char *const hook_names[HOOK_KINDS] = {"transform", "filter", "index function", "predicate", "map"};

static void destroy(struct hook *hook)
{
	if (hook->script)
		hook->script->registered--;
	list_remove(&hook->node);
	alloc_object_free(&hook_type, hook);
}

static int release_function(lua_State *L, void *data)
{
	luaL_unref(L, LUA_REGISTRYINDEX, ((struct hook *)data)->reference);
	return 0;
}

static void run_release(void *data)
{
	struct hook *hook = data;
	call_plain(hook->script->state, release_function, hook, NULL);
	destroy(hook);
}

struct hook *hook_new(lua_State *L, int index, enum hook_kind kind)
{
	struct script *script = bind_registering(L);
	int reference = bind_function(L, index, hook_names[kind]);
	lua_Debug record;
	lua_pushvalue(L, index);
	lua_getinfo(L, ">S", &record);
	struct hook *hook = alloc_object(&hook_type, sizeof(*hook));
	hook->script = script;
	hook->kind = kind;
	hook->reference = reference;
	snprintf(hook->place, sizeof(hook->place), "%s:%d", record.short_src, record.linedefined);
	loop_job_init(&hook->release, run_release, hook);
	list_add_tail(&script->hooks, &hook->node);
	script->registered++;
	return hook;
}

const char *hook_place(const struct hook *hook)
{
	return hook->place;
}

void hook_free(struct hook *hook)
{
	if (!hook)
		return;
	hook->freed = true;
	if (hook->script)
		loop_post(hook->script->loop, &hook->release);
	else
		destroy(hook);
}

void hook_end_all(struct script *script)
{
	for (struct list *node; (node = list_pop(&script->hooks));) {
		struct hook *hook = LIST_ENTRY(node, struct hook, node);
		loop_job_cancel(&hook->release);
		hook->script = NULL;
		if (hook->freed)
			destroy(hook);
	}
}

struct run {
	struct hook *hook;
	const struct hook_call *call;
	struct err *err;
	int result;
};

static int run(lua_State *L, void *data)
{
	struct run *run = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, run->hook->reference);
	int arguments = run->call->push(L, run->call->data);
	if (call_function(L, arguments, 1, run->err))
		return -1;
	if (!run->call->read(L, lua_gettop(L), run->call->data, run->err))
		return 0;
	return err_prefix(run->err, "%s", run->hook->place);
}

static int run_nested(lua_State *L)
{
	struct run *nested = lua_touserdata(L, 1);
	lua_settop(L, 0);
	nested->result = run(L, nested);
	return 0;
}

/* Inside an entry of the same state. One that is being stopped calls nothing more. */
static int call_nested(lua_State *L, struct run *nested)
{
	if (state_of(L)->killed)
		return err_set(nested->err, "", "stopped");
	if (!lua_cpcall(L, run_nested, nested))
		return nested->result;
	err_set(nested->err, "", "%s", lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "not enough memory");
	lua_pop(L, 1);
	return -1;
}

int hook_call(struct hook *hook, const struct hook_call *call, struct err *err)
{
	if (!hook->script)
		return err_set(err, "", "its script has ended");
	struct state *state = hook->script->state;
	if (state->parked)
		return err_set(err, "", "its script is parked: %s", state->parked);
	struct run one = {hook, call, err, 0};
	const char *outer = state->hook, *doing = state->doing, *doing_at = state->doing_at;
	state->hook = state->doing = hook_names[hook->kind];
	state->doing_at = hook->place;
	int result = state->inside ? call_nested(state->inside, &one) : call_plain(state, run, &one, err);
	state->hook = outer;
	state->doing = doing;
	state->doing_at = doing_at;
	return result;
}

/* Of a script that is parked each call fails: that is said once. One that is being stopped says so itself. */
void hook_failed(const struct hook *hook, const struct err *err, const struct informer *informer,
		 const struct object *object)
{
	struct script *script = hook->script;
	if (!script || script->state->killed || script->parked)
		return;
	script->hook_errors[hook->kind]++;
	script_log_error(script, err, hook_names[hook->kind], informer, object);
	script_note_state(script);
}

void hook_refuse(lua_State *L, const char *what)
{
	const char *hook = state_of(L)->hook;
	if (hook)
		bind_misuse(L, "%s does not work inside the script's %s: the host is in the middle of an event", what,
			    hook);
}
