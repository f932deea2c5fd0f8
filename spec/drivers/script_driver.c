/* script_driver: enters Lua the way the host does, with limits, and says how each entry ended.
 *
 *   script_driver time SECONDS FILE...  runs each chunk as a task under a time limit; a JSON line each
 *   script_driver memory FILE           runs the chunk again and again, each time with a little more memory, from none
 * to enough
 *   script_driver stops SECONDS FILE    runs the chunk three times under a time limit, so many seconds apart, and
 * prints why the state is parked then
 *   script_driver strings FILE TEXT...  runs the chunk without limits in a state with the full library. Its arguments
 * are a function, after which the table string has what scripts have there, and the texts */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/library.h"
#include "script/task.h"
#include "script/value.h"

#define MEMORY_LIMIT (64u << 20)
#define MEMORY_STEP 24

static const char object_json[] =
    "{\"metadata\":{\"name\":\"web-1\",\"labels\":{\"app\":\"w\\u00e9b\"},\"generation\":9007199254740993},"
    "\"spec\":{\"args\":[\"a\",\"b\",[],{}],\"replicas\":3,\"ratio\":0.25}}";

struct chunk {
	const char *path;
	int reference;
	struct err *err;
	char **texts; /* of strings: NULL behind the last */
};

struct outcome {
	bool ended;
	struct err err;
};

static int load_chunk(lua_State *L, void *data)
{
	struct chunk *chunk = data;
	size_t length;
	char *text = library_read(chunk->path, &length, chunk->err);
	if (!text)
		return -1;
	int result = library_load(L, text, length, "@chunk.lua", chunk->err);
	alloc_free(text);
	if (result == 0)
		chunk->reference = state_ref(L);
	return result;
}

static int push_chunk(lua_State *L, void *data)
{
	const struct chunk *chunk = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, chunk->reference);
	value_push(L, (struct json_slice){object_json, sizeof(object_json) - 1});
	return 1;
}

static void on_end(void *data, const struct err *err)
{
	struct outcome *outcome = ((struct outcome **)data)[1];
	outcome->ended = true;
	if (err)
		outcome->err = *err;
}

/* options.data is shared by push and on_end: a pair of pointers. */
static int push_pair(lua_State *L, void *data)
{
	return push_chunk(L, ((void **)data)[0]);
}

static void run(struct state *state, struct chunk *chunk, struct outcome *outcome)
{
	void *pair[] = {chunk, outcome};
	memset(outcome, 0, sizeof(*outcome));
	struct task_options options = {.push = push_pair, .on_end = on_end, .data = pair};
	struct task *task = task_start(state, &options);
	if (task)
		task_cancel(task);
}

/* Each round is stopped, and is judged for itself. */
static void unpark(struct state *state)
{
	alloc_free(state->parked);
	state->parked = NULL;
}

static int say_alive(lua_State *L, void *data)
{
	(void)data;
	lua_getglobal(L, "tostring");
	lua_pushliteral(L, "alive");
	return call_function(L, 1, 1, NULL);
}

static bool is_alive(struct state *state)
{
	struct err err;
	return !state->parked && call_plain(state, say_alive, NULL, &err) == 0;
}

static void print_outcome(const char *path, double elapsed, const struct outcome *outcome, bool alive)
{
	struct buf line;
	buf_init(&line, 0);
	buf_append_text(&line, "{\"chunk\":");
	buf_append_json_string(&line, path, strlen(path));
	buf_append_format(&line, ",\"elapsed\":%.3f,\"alive\":%s,\"err\":", elapsed, alive ? "true" : "false");
	buf_append_json_string(&line, outcome->err.message, strlen(outcome->err.message));
	printf("%s}\n", buf_text(&line));
	buf_fini(&line);
}

static int time_chunk(const char *path, double limit)
{
	struct err err;
	struct state_options options = {.name = "chunk", .memory_limit = MEMORY_LIMIT, .time_limit = limit};
	struct state *state = state_new(&options, &err);
	struct chunk chunk = {path, LUA_NOREF, &err, NULL};
	if (!state || call_plain(state, load_chunk, &chunk, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		state_free(state);
		return 1;
	}
	struct outcome outcome;
	double start = clock_now();
	run(state, &chunk, &outcome);
	double elapsed = clock_now() - start;
	print_outcome(path, elapsed, &outcome, is_alive(state));
	state_free(state);
	return 0;
}

/* Every allocation of the entry fails once, in turn: thread, arguments, the chunk's own, the traceback. */
static int sweep_memory(const char *path)
{
	struct err err;
	struct state_options options = {.name = "chunk", .memory_limit = MEMORY_LIMIT};
	struct state *state = state_new(&options, &err);
	struct chunk chunk = {path, LUA_NOREF, &err, NULL};
	if (!state || call_plain(state, load_chunk, &chunk, &err) < 0)
		return fprintf(stderr, "%s\n", err.message), 1;
	int refused = 0, rounds = 0;
	struct outcome outcome;
	do {
		lua_gc(state->L, LUA_GCCOLLECT, 0);
		lua_gc(state->L, LUA_GCSTOP, 0);
		unpark(state);
		state->memory_limit = state->memory + (size_t)rounds * MEMORY_STEP;
		run(state, &chunk, &outcome);
		state->memory_limit = MEMORY_LIMIT;
		lua_gc(state->L, LUA_GCRESTART, 0);
		refused += strncmp(outcome.err.message, "not enough memory", 17) == 0;
		rounds++;
	} while (strncmp(outcome.err.message, "not enough memory", 17) == 0 && rounds < 100000);
	unpark(state);
	printf("{\"rounds\":%d,\"refused\":%d,\"alive\":%s,\"err\":\"%s\"}\n", rounds, refused,
	       is_alive(state) ? "true" : "false", outcome.err.message);
	state_free(state);
	return 0;
}

/* The clock stands still meanwhile but for the steps; the limit is of real time. */
static int stop_thrice(const char *path, double apart)
{
	struct err err;
	struct state_options options = {.name = "chunk", .time_limit = 0.05};
	struct state *state = state_new(&options, &err);
	struct chunk chunk = {path, LUA_NOREF, &err, NULL};
	if (!state || call_plain(state, load_chunk, &chunk, &err) < 0)
		return fprintf(stderr, "%s\n", err.message), 1;
	struct outcome outcome;
	clock_stop();
	for (int i = 0; i < 3; i++) {
		run(state, &chunk, &outcome);
		clock_set(clock_now() + apart);
	}
	run(state, &chunk, &outcome);
	printf("%s\n%s\n", state->parked ? state->parked : "not parked", outcome.err.message);
	state_free(state);
	return 0;
}

static int l_open_strings(lua_State *L)
{
	bind_string_open(L);
	return 0;
}

static int call_chunk(lua_State *L, void *data)
{
	const struct chunk *chunk = data;
	int arguments = 1;
	lua_rawgeti(L, LUA_REGISTRYINDEX, chunk->reference);
	lua_pushcfunction(L, l_open_strings);
	for (char **text = chunk->texts; *text; text++, arguments++)
		lua_pushstring(L, *text);
	return call_function(L, arguments, 0, chunk->err);
}

static int run_strings(char **argv)
{
	struct err err;
	struct state_options options = {.name = "chunk", .full_library = true};
	struct state *state = state_new(&options, &err);
	struct chunk chunk = {argv[0], LUA_NOREF, &err, argv + 1};
	int failed = !state || call_plain(state, load_chunk, &chunk, &err) < 0 ||
		     call_plain(state, call_chunk, &chunk, &err) < 0;
	if (failed)
		fprintf(stderr, "%s\n", err.message);
	state_free(state);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;
	if (argc >= 4 && strcmp(argv[1], "time") == 0) {
		for (int i = 3; i < argc; i++)
			failed |= time_chunk(argv[i], strtod(argv[2], NULL));
	} else if (argc == 3 && strcmp(argv[1], "memory") == 0) {
		failed = sweep_memory(argv[2]);
	} else if (argc == 4 && strcmp(argv[1], "stops") == 0) {
		failed = stop_thrice(argv[3], strtod(argv[2], NULL));
	} else if (argc >= 3 && strcmp(argv[1], "strings") == 0) {
		failed = run_strings(argv + 2);
	} else {
		fprintf(stderr,
			"usage: script_driver time SECONDS FILE... | memory FILE | stops SECONDS FILE | strings FILE "
			"TEXT...\n");
		return 2;
	}
	return alloc_live(stderr) ? 1 : failed;
}
