#include "script/call.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/bind.h"
#include "script/limit.h"
#include "script/value.h"

/* Of a larger scratch the memory is given back between entries. */
#define KEPT_SCRATCH ((size_t)1 << 20)

/* Bytes of JSON: a larger error object is only called a table. */
#define SHOWN_OBJECT 512

/* Before each place of a traceback. */
#define ARROW " <- "

struct frame {
	call_fn fn;
	void *data;
	int result;
	struct err *err;
};

static int enter(lua_State *L)
{
	struct frame *frame = lua_touserdata(L, 1);
	lua_settop(L, 0);
	frame->result = frame->fn(L, frame->data);
	return 0;
}

static void park(struct state *state, char *why)
{
	if (state->parked)
		alloc_free(why);
	else
		state->parked = why;
}

/* The error on top of the stack, outside of a protected call, where nothing may raise. Valid until it is popped. */
static const char *top_text(lua_State *L)
{
	return lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "(error object is no text)";
}

static int collect_all(lua_State *L)
{
	lua_gc(L, LUA_GCCOLLECT, 0);
	return 0;
}

struct step {
	int kib;
	bool ended;
};

static int collect_step(lua_State *L)
{
	struct step *step = lua_touserdata(L, 1);
	step->ended = lua_gc(L, LUA_GCSTEP, step->kib);
	return 0;
}

/* Whether it could be done, as finalizers may raise. The protected call takes memory, of which there may be none left.
 */
static bool collect(struct state *state, lua_CFunction fn, struct step *step)
{
	struct limit limit;
	size_t memory_limit = state->memory_limit;
	const char *doing = state->doing;
	state->memory_limit = 0;
	state->doing = "garbage collection";
	limit_enter(&limit, state);
	int failed = lua_cpcall(state->L, fn, step);
	limit_leave(&limit);
	state->doing = doing;
	state->memory_limit = memory_limit;
	if (failed)
		log_error(LOG_FIELDS({"script", state->name}), "a finalizer failed: %s", top_text(state->L));
	lua_settop(state->L, 0);
	return !failed;
}

bool call_collect(struct state *state, int kib)
{
	struct step step = {.kib = kib};
	return collect(state, collect_step, &step) && step.ended;
}

/* Lua's collector takes an event for its few bytes, whatever its object has. Where a script goes on holding events, the
 * next collection comes when there are twice as many. */
static void settle_kept(struct state *state)
{
	bool fewer = state->kept_most > STATE_KEPT && state->kept < state->kept_most / 4;
	if (state->kept < state->kept_most && !fewer)
		return;
	if (!fewer)
		collect(state, collect_all, NULL);
	state->kept_most = state->kept > STATE_KEPT / 2 ? state->kept * 2 : STATE_KEPT;
}

/* A state that is over its soft limit is collected here, between entries, since the allocator can't. */
static void settle_memory(struct state *state, bool refused)
{
	size_t limit = state->memory_limit, soft = limit / 4 * 3;
	if (state->parked || limit == 0 || (state->memory <= soft && !refused))
		return;
	bool collected = collect(state, collect_all, NULL);
	if (!collected || (refused && state->memory > soft))
		park(state, alloc_format("it holds %zu MiB after a full collection, more than three quarters of what "
					 "--memory-limit allows (%zu MiB)",
					 state->memory >> 20, limit >> 20));
}

static int fail(struct state *state, int status, struct err *err)
{
	if (state->killed == KILL_TIME)
		return err_set(err, "", "%s: stopped: ran longer than %g s without yielding (--time-limit)",
			       state->seen_at, state->time_limit);
	if (state->killed == KILL_MEMORY)
		return err_set(err, "", "not enough memory: the script needs more than %zu MiB (--memory-limit)",
			       state->memory_limit >> 20);
	if (status == LUA_ERRMEM)
		return err_set(err, "", "not enough memory");
	return err_set(err, "", "%s", top_text(state->L));
}

/* Counts an entry that was stopped, before its reason is forgotten. */
static void note_stop(struct state *state)
{
	struct err last;
	double now = clock_now();
	memmove(state->stopped_at + 1, state->stopped_at, sizeof(state->stopped_at) - sizeof(*state->stopped_at));
	state->stopped_at[0] = now;
	state->stops[state->killed]++;
	if (state->stops[KILL_TIME] + state->stops[KILL_MEMORY] < STATE_STOPS ||
	    now - state->stopped_at[STATE_STOPS - 1] > STATE_WINDOW)
		return;
	fail(state, LUA_ERRRUN, &last);
	park(state, alloc_format("it was stopped %d times within %g s, the last time at %s", STATE_STOPS, STATE_WINDOW,
				 last.message));
}

int call_plain(struct state *state, call_fn fn, void *data, struct err *err)
{
	struct frame frame = {fn, data, 0, err};
	struct limit limit;
	limit_enter(&limit, state);
	int status = lua_cpcall(state->L, enter, &frame);
	limit_leave(&limit);
	int result = frame.result ? -1 : 0;
	if (status || state->killed)
		result = fail(state, status, err);
	lua_settop(state->L, 0);
	bool refused = state->killed == KILL_MEMORY || status == LUA_ERRMEM;
	if (state->killed)
		note_stop(state);
	state->killed = KILL_NONE;
	settle_memory(state, refused);
	settle_kept(state);
	collector_look(&state->collector, state->memory);
	if (state->scratch.capacity > KEPT_SCRATCH)
		buf_fini(&state->scratch);
	if (state->decoding.capacity > KEPT_SCRATCH)
		buf_fini(&state->decoding);
	return result;
}

/* Whether a line of a traceback helps: C functions and ours don't, nor does the frame that failed, whose line LuaJIT no
 * longer knows and the message has said. */
static bool is_place(const char *line, size_t length)
{
	const char *in = memmem(line, length, ": in ", 5);
	return in && in > line && isdigit((unsigned char)in[-1]) && strncmp(line, "perilune.", 9) != 0;
}

/* Lua's traceback, on one line: "init.lua:3: in function 'f' <- init.lua:9: in main chunk". */
static void append_traceback(lua_State *L, lua_State *thread, int level, struct buf *out)
{
	luaL_traceback(L, thread, NULL, level);
	const char *line = strchr(lua_tostring(L, -1), '\n');
	while (line) {
		line += strspn(line, "\n\t ");
		const char *end = strchr(line, '\n');
		size_t length = end ? (size_t)(end - line) : strlen(line);
		if (is_place(line, length)) {
			buf_append_text(out, ARROW);
			buf_append(out, line, length);
		}
		line = end;
	}
	lua_pop(L, 1);
}

/* Whether the JSON may hold an object of the API, or the data of one: that may be a Secret. */
static bool may_be_secret(const struct buf *json)
{
	static const char *const names[] = {"\"kind\":", "\"data\":", "\"stringData\":"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (memmem(json->data, json->length, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Pushes a small table as JSON. */
static bool push_object(lua_State *L)
{
	struct buf *json = &state_of(L)->scratch;
	struct err err;
	buf_reset(json);
	if (value_encode(L, lua_gettop(L), json, &err) || json->length > SHOWN_OBJECT || may_be_secret(json))
		return false;
	lua_pushfstring(L, "error object %s", buf_text(json));
	return true;
}

/* The value on top of L as text; a table goes through its __tostring, which may raise: we are inside the protected
 * call. */
static const char *error_text(lua_State *L, struct err *err)
{
	if (bind_err_read(L, -1, err))
		return err->message;
	if (lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER)
		return lua_tostring(L, -1);
	if (lua_type(L, -1) == LUA_TNIL)
		return "error(nil)";
	if (luaL_callmeta(L, -1, "__tostring") && lua_type(L, -1) == LUA_TSTRING)
		return lua_tostring(L, -1);
	if (lua_istable(L, -1) && push_object(L))
		return lua_tostring(L, -1);
	return lua_pushfstring(L, "(error object is a %s)", luaL_typename(L, -1));
}

/* "init.lua:3: " at the head of a traceback: how long it is, 0 when there is none. */
static int place_length(const char *place)
{
	const char *in = strstr(place, ": in ");
	return in ? (int)(in - place) + 2 : 0;
}

void call_error(lua_State *L, lua_State *thread, int status, struct err *err)
{
	struct state *state = state_of(L);
	if (state->killed || status == LUA_ERRMEM) {
		fail(state, status, err);
		return;
	}
	struct err found;
	err_clear(&found);
	if (thread != L)
		lua_xmove(thread, L, 1); /* what may raise must not run on the coroutine's stack */
	/* Of a text error() has put it there, unless told not to. */
	bool says_place = lua_isstring(L, -1);
	const char *text = error_text(L, &found);
	buf_reset(&state->scratch);
	append_traceback(L, thread, thread == L ? 1 : 0, &state->scratch);
	const char *trace = buf_text(&state->scratch), *place = trace + (*trace ? strlen(ARROW) : 0);
	err_set(&found, found.reason, "%.*s%s%s", says_place ? 0 : place_length(place), place, text, trace);
	if (err)
		*err = found;
}

static int on_error(lua_State *L)
{
	struct err *err = lua_touserdata(L, lua_upvalueindex(1));
	lua_settop(L, 1);
	call_error(L, L, LUA_ERRRUN, err);
	return 0;
}

int call_function(lua_State *L, int arguments, int results, struct err *err)
{
	struct err ignored;
	struct err *out = err ? err : &ignored;
	err_set(out, "", "error in error handling");
	lua_pushlightuserdata(L, out);
	lua_pushcclosure(L, on_error, 1);
	int handler = lua_gettop(L) - arguments - 1;
	lua_insert(L, handler);
	int status = lua_pcall(L, arguments, results, handler);
	if (status == LUA_ERRMEM) /* no handler is called for it */
		fail(state_of(L), status, out);
	lua_remove(L, handler);
	return status == 0 ? 0 : -1;
}
