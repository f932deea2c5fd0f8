#include "script/state.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>

#include "base/alloc.h"
#include "script/call.h"
#include "script/host_private.h"
#include "script/library.h"
#include "script/task.h"

ALLOC_TYPE(state_type, "state");

static void *count_and_allocate(void *data, void *memory, size_t old_size, size_t new_size)
{
	struct state *state = data;
	size_t old = memory ? old_size : 0;
	if (state->memory_limit > 0 && new_size > old && state->memory - old + new_size > state->memory_limit) {
		state->killed = KILL_MEMORY;
		return NULL;
	}
	void *result = state->allocate(state->allocate_data, memory, old_size, new_size);
	if (result || new_size == 0)
		state->memory += new_size - old;
	return result;
}

static int open_state(lua_State *L, void *data)
{
	const struct state_options *options = data;
	library_open(L, options->full_library);
	/* Last: opening the jit library switches the compiler on. */
	luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | (options->jit ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
	return 0;
}

/* luaL_newstate's allocator is LuaJIT's own; wrapped here, and given back before lua_close, which looks for it. */
static bool wrap_allocator(struct state *state)
{
	state->L = luaL_newstate();
	if (!state->L)
		return false;
	state->allocate = lua_getallocf(state->L, &state->allocate_data);
	state->memory = (size_t)lua_gc(state->L, LUA_GCCOUNT, 0) * 1024 + (size_t)lua_gc(state->L, LUA_GCCOUNTB, 0);
	lua_setallocf(state->L, count_and_allocate, state);
	return true;
}

struct state *state_new(const struct state_options *options, struct err *err)
{
	struct state *state = alloc_object(&state_type, sizeof(*state));
	state->name = alloc_string(options->name);
	state->host = options->host; /* before the libraries: k8s.config is read from it */
	state->full_library = options->full_library;
	state->silent = options->silent;
	list_init(&state->tasks);
	collector_init(&state->collector, state, options->host ? host_loop(options->host) : NULL);
	buf_init(&state->scratch, 0);
	buf_init(&state->decoding, 0);
	state->kept_most = STATE_KEPT;
	if (!wrap_allocator(state)) {
		err_set(err, "", "%s: no memory for a Lua state", options->name);
		state_free(state);
		return NULL;
	}
	state->memory_limit = options->memory_limit;
	struct state_options copy = *options;
	if (call_plain(state, open_state, &copy, err) < 0) {
		err_prefix(err, "%s: --memory-limit is too small to start a script", options->name);
		state_free(state);
		return NULL;
	}
	state->time_limit = options->time_limit; /* of the script's own code, on a slow machine too */
	return state;
}

void state_free(struct state *state)
{
	if (!state)
		return;
	if (state->L) {
		task_cancel_all(state);
		lua_setallocf(state->L, state->allocate, state->allocate_data);
		lua_close(state->L);
	}
	collector_fini(&state->collector); /* each entry may have posted its job */
	buf_fini(&state->scratch);
	buf_fini(&state->decoding);
	alloc_free(state->parked);
	alloc_free(state->name);
	alloc_object_free(&state_type, state);
}

struct state *state_of(lua_State *L)
{
	void *data;
	lua_getallocf(L, &data);
	return data;
}

int state_ref(lua_State *L)
{
	struct state *state = state_of(L);
	size_t limit = state->memory_limit;
	state->memory_limit = 0;
	int reference = luaL_ref(L, LUA_REGISTRYINDEX);
	state->memory_limit = limit;
	return reference;
}
