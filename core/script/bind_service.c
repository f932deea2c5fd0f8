/* bind_service: an HTTP server that a function of a spec answers, for scripts that ask others than the API server.
 * Specs alone find it, in perilune.testing.core.
 *
 * It lives on the loop: it answers while the spec waits. The function is a plain call, as a hook is: it can't wait. */
#include <lauxlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/exchange.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/host_private.h"

ALLOC_TYPE(service_type, "spec's HTTP server");

#define SERVICE "perilune.testing.service"
#define BODY_LIMIT ((size_t)16 << 20)
#define MOST_HEADERS 64

/* Its handle is in the registry while it is open, so that it is collected when it has been closed, or with the state.
 */
struct service {
	struct state *state;
	struct exchange *exchange;
	int function, handle; /* in the registry */
	bool answering;       /* the function runs */
};

/* --- a request --- */

struct entry {
	struct service *service;
	struct exchange_request *request;
	struct err *err;
};

static void push_pairs(lua_State *L, const struct exchange_pairs *pairs)
{
	lua_createtable(L, 0, (int)pairs->count);
	for (size_t i = pairs->count; i > 0; i--) { /* so that of several with one name the first counts */
		lua_pushstring(L, pairs->items[i - 1].value);
		lua_setfield(L, -2, pairs->items[i - 1].name);
	}
}

static void push_request(lua_State *L, const struct exchange_request *request)
{
	lua_createtable(L, 0, 5);
	lua_pushstring(L, request->method);
	lua_setfield(L, -2, "method");
	lua_pushstring(L, request->path);
	lua_setfield(L, -2, "path");
	push_pairs(L, &request->query);
	lua_setfield(L, -2, "query");
	push_pairs(L, &request->headers);
	lua_setfield(L, -2, "headers");
	lua_pushlstring(L, buf_text(&request->body), request->body.length);
	lua_setfield(L, -2, "body");
}

/* The answer is at 1 to 3: status, "Name: value" texts in an array, body. The texts are kept alive by their array. */
static void answer(lua_State *L, struct exchange_request *request, int at)
{
	const char *headers[MOST_HEADERS + 1];
	size_t count = lua_objlen(L, at + 1), length;
	if (count > MOST_HEADERS)
		luaL_error(L, "more than %d headers", MOST_HEADERS);
	for (size_t i = 0; i < count; i++) {
		lua_rawgeti(L, at + 1, (int)i + 1);
		headers[i] = luaL_checkstring(L, -1);
		lua_pop(L, 1);
	}
	headers[count] = NULL;
	const char *body = luaL_checklstring(L, at + 2, &length);
	exchange_answer(request, luaL_checkint(L, at), headers, body, length);
}

static int run_request(lua_State *L, void *data)
{
	struct entry *entry = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, entry->service->function);
	push_request(L, entry->request);
	if (call_function(L, 1, 3, entry->err))
		return -1;
	answer(L, entry->request, lua_gettop(L) - 2);
	return 0;
}

static void on_request(void *data, struct exchange_request *request)
{
	static const char *const no_headers[] = {NULL};
	struct service *service = data;
	struct err err;
	struct entry entry = {service, request, &err};
	if (request->too_large) {
		exchange_answer(request, 413, no_headers, "", 0);
		return;
	}
	service->answering = true;
	int result = call_plain(service->state, run_request, &entry, &err);
	service->answering = false;
	if (!result)
		return;
	log_error(NULL, "the spec's HTTP server failed: %s", err.message);
	exchange_answer(request, 500, no_headers, "", 0);
}

/* An answer is given at once, so that nothing here outlives the call. */
static void on_gone(void *data, struct exchange_request *request)
{
	(void)data;
	(void)request;
}

/* --- what Lua sees --- */

static void end(struct service *service)
{
	if (service->exchange)
		exchange_free(service->exchange);
	service->exchange = NULL;
}

static int l_gc(lua_State *L)
{
	struct service **handle = lua_touserdata(L, 1);
	if (*handle) {
		end(*handle);
		alloc_object_free(&service_type, *handle);
	}
	*handle = NULL;
	return 0;
}

static int l_close(lua_State *L)
{
	struct service *service = *(struct service **)bind_self(L, SERVICE, "server");
	if (service->answering)
		return bind_misuse(L, "a server can't be closed by the function that answers for it");
	if (!service->exchange)
		return 0;
	end(service);
	luaL_unref(L, LUA_REGISTRYINDEX, service->function);
	luaL_unref(L, LUA_REGISTRYINDEX, service->handle);
	return 0;
}

/* serve(function(request) return status, headers, body end): the server and its port. */
static int l_serve(lua_State *L)
{
	struct state *state = state_of(L);
	struct err err;
	luaL_checktype(L, 1, LUA_TFUNCTION);
	struct service **handle = lua_newuserdata(L, sizeof(struct service *));
	*handle = NULL;
	luaL_getmetatable(L, SERVICE);
	lua_setmetatable(L, -2);
	lua_pushvalue(L, 1);
	int function = luaL_ref(L, LUA_REGISTRYINDEX);
	lua_pushvalue(L, -1);
	int reference = luaL_ref(L, LUA_REGISTRYINDEX);
	struct service *service = alloc_object(&service_type, sizeof(*service));
	*service = (struct service){.state = state, .function = function, .handle = reference};
	*handle = service;
	struct exchange_options options = {.address = "127.0.0.1:0",
					   .body_limit = BODY_LIMIT,
					   .on_request = on_request,
					   .on_gone = on_gone,
					   .data = service};
	service->exchange = exchange_new(host_loop(state->host), &options, &err);
	if (!service->exchange)
		return bind_misuse(L, "testing.http_server: %s", err.message);
	lua_pushinteger(L, exchange_port(service->exchange));
	return 2;
}

void bind_service_open(lua_State *L)
{
	static const luaL_Reg methods[] = {{"close", l_close}, {NULL, NULL}};
	bind_type(L, SERVICE, "a server", methods, l_gc, NULL);
	lua_pushcfunction(L, l_serve);
	lua_setfield(L, -2, "serve");
}
