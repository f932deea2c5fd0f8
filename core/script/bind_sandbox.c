#include "script/bind_sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "script/bind.h"

#define ANSWER "perilune.sandbox.answer"
#define MOST_HEADERS 64

/* A request's answer as Lua holds it. */
struct answer {
	struct exchange_request *request; /* NULL when the request has gone */
};

static struct exchange_request *answer_of(lua_State *L)
{
	struct answer *answer = luaL_checkudata(L, 1, ANSWER);
	return answer->request;
}

/* The texts are kept alive by the table at index. */
static void read_headers(lua_State *L, int index, const char **headers)
{
	int count = (int)lua_objlen(L, index);
	luaL_argcheck(L, count < MOST_HEADERS, index, "too many headers");
	for (int i = 1; i <= count; i++) {
		lua_rawgeti(L, index, i);
		headers[i - 1] = luaL_checkstring(L, -1);
		luaL_argcheck(L, strchr(headers[i - 1], ':'), index, "a header is \"Name: value\"");
		lua_pop(L, 1);
	}
	headers[count] = NULL;
}

static int l_reply(lua_State *L)
{
	const char *headers[MOST_HEADERS];
	size_t length;
	struct exchange_request *request = answer_of(L);
	int status = luaL_checkint(L, 2);
	read_headers(L, 3, headers);
	const char *body = luaL_checklstring(L, 4, &length);
	if (request)
		exchange_answer(request, status, headers, body, length);
	return 0;
}

static int l_open(lua_State *L)
{
	const char *headers[MOST_HEADERS];
	struct exchange_request *request = answer_of(L);
	int status = luaL_checkint(L, 2);
	read_headers(L, 3, headers);
	if (request)
		exchange_open(request, status, headers);
	return 0;
}

static int l_push(lua_State *L)
{
	size_t length;
	struct exchange_request *request = answer_of(L);
	const char *bytes = luaL_checklstring(L, 2, &length);
	if (request)
		exchange_push(request, bytes, length);
	return 0;
}

static int l_finish(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	if (request)
		exchange_end(request);
	return 0;
}

static int l_cut(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	double after = luaL_checknumber(L, 2);
	luaL_argcheck(L, after >= 0 && after < 1e15, 2, "not a number of bytes");
	if (request)
		exchange_cut(request, (size_t)after);
	return 0;
}

static int l_cut_now(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	if (request)
		exchange_cut_here(request);
	return 0;
}

static int l_reset(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	if (request)
		exchange_reset(request);
	return 0;
}

static int l_silence(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	if (request)
		exchange_silence(request);
	return 0;
}

static int l_slow(lua_State *L)
{
	struct exchange_request *request = answer_of(L);
	double a_second = luaL_checknumber(L, 2);
	luaL_argcheck(L, a_second > 0, 2, "not a number above 0");
	if (request)
		exchange_slow(request, a_second);
	return 0;
}

/* --- requests --- */

/* The first of several with one name, as the API server reads them. */
static void push_pairs(lua_State *L, const struct exchange_pairs *pairs)
{
	lua_createtable(L, 0, (int)pairs->count);
	for (size_t i = pairs->count; i > 0; i--) {
		lua_pushstring(L, pairs->items[i - 1].value);
		lua_setfield(L, -2, pairs->items[i - 1].name);
	}
}

int bind_sandbox_push_request(lua_State *L, struct exchange_request *request)
{
	lua_pushstring(L, request->method);
	lua_pushstring(L, request->path);
	push_pairs(L, &request->query);
	push_pairs(L, &request->headers);
	if (request->too_large)
		lua_pushnil(L);
	else
		lua_pushlstring(L, buf_text(&request->body), request->body.length);
	struct answer *answer = lua_newuserdata(L, sizeof(*answer));
	answer->request = request;
	request->owner = answer;
	luaL_getmetatable(L, ANSWER);
	lua_setmetatable(L, -2);
	return 6;
}

void bind_sandbox_forget(struct exchange_request *request)
{
	struct answer *answer = request->owner;
	if (answer)
		answer->request = NULL;
}

/* --- io --- */

static int l_now(lua_State *L)
{
	lua_pushnumber(L, clock_now());
	return 1;
}

static int l_wall(lua_State *L)
{
	lua_pushnumber(L, clock_wall());
	return 1;
}

static int l_alarm(lua_State *L)
{
	struct bind_alarm *alarm = lua_touserdata(L, lua_upvalueindex(1));
	if (lua_isnoneornil(L, 1))
		loop_timer_stop(alarm->loop, &alarm->timer);
	else
		loop_timer_start(alarm->loop, &alarm->timer, luaL_checknumber(L, 1));
	return 0;
}

static int l_log(lua_State *L)
{
	log_error(NULL, "%s", luaL_checkstring(L, 1));
	return 0;
}

static int is_manifest(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');
	return end && end != entry->d_name && (!strcmp(end, ".yaml") || !strcmp(end, ".yml") || !strcmp(end, ".json"));
}

static int fail(lua_State *L, const char *path)
{
	lua_pushnil(L);
	lua_pushfstring(L, "%s: %s", path, strerror(errno));
	return 2;
}

static int push_folder(lua_State *L, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_manifest, alphasort);
	if (count < 0)
		return fail(L, path);
	lua_createtable(L, count, 0);
	for (int i = 0; i < count; i++) {
		lua_pushfstring(L, "%s/%s", path, entries[i]->d_name);
		lua_rawseti(L, -2, i + 1);
		free(entries[i]);
	}
	free(entries);
	return 1;
}

/* files(path): the path itself, or the manifests in the folder, in order; nil and why. */
static int l_files(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct stat found;
	if (stat(path, &found))
		return fail(L, path);
	if (S_ISDIR(found.st_mode))
		return push_folder(L, path);
	lua_createtable(L, 1, 0);
	lua_pushvalue(L, 1);
	lua_rawseti(L, -2, 1);
	return 1;
}

static const luaL_Reg answers[] = {
    {"reply", l_reply},     {"open", l_open},   {"push", l_push},       {"finish", l_finish}, {"cut", l_cut},
    {"cut_now", l_cut_now}, {"reset", l_reset}, {"silence", l_silence}, {"slow", l_slow},     {NULL, NULL}};
static const luaL_Reg functions[] = {{"now", l_now},     {"wall", l_wall},          {"log", l_log},
				     {"files", l_files}, {"nearest", bind_nearest}, {NULL, NULL}};

void bind_sandbox_push_io(lua_State *L, struct bind_alarm *alarm)
{
	bind_type(L, ANSWER, "an answer", answers, NULL, NULL);
	lua_newtable(L);
	luaL_register(L, NULL, functions);
	lua_pushlightuserdata(L, alarm);
	lua_pushcclosure(L, l_alarm, 1);
	lua_setfield(L, -2, "alarm");
}
