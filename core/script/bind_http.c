/* bind_http: k8s.http: requests to servers that are no part of the cluster. They carry none of its credentials, trust
 * the system's authorities alone, and share connections with nothing else. */
#include <lauxlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "kube/status.h"
#include "net/http.h"
#include "script/bind.h"
#include "script/host_private.h"
#include "script/task.h"

ALLOC_TYPE(fetch_type, "HTTP request");

#define DEFAULT_TIMEOUT 30 /* seconds */
#define MOST_HEADERS 100
#define LONGEST_BODY ((size_t)16 << 20) /* of a request and of an answer */

struct fetch {
	struct task *task;
	struct http *http;
	bool write;
};

/* --- the answer --- */

static void push_field(lua_State *L, const char *name, const char *value)
{
	lua_getfield(L, -1, name);
	bool again = !lua_isnil(L, -1);
	lua_pop(L, 1);
	lua_pushstring(L, name);
	if (again) {
		lua_getfield(L, -2, name);
		lua_pushliteral(L, ", ");
	}
	lua_pushstring(L, value);
	if (again)
		lua_concat(L, 3);
	lua_rawset(L, -3);
}

static void push_fields(lua_State *L, const struct buf *fields)
{
	lua_newtable(L);
	const char *at = fields->data, *end = at + fields->length;
	while (at < end) {
		const char *value = at + strlen(at) + 1;
		push_field(L, at, value);
		at = value + strlen(value) + 1;
	}
}

static int push_answer(lua_State *L, void *data)
{
	const struct http_result *result = data;
	lua_createtable(L, 0, 3);
	lua_pushinteger(L, result->head.status);
	lua_setfield(L, -2, "status");
	push_fields(L, result->fields);
	lua_setfield(L, -2, "headers");
	lua_pushlstring(L, buf_text(result->body), result->body->length);
	lua_setfield(L, -2, "body");
	return 1;
}

static int push_failure(lua_State *L, void *data)
{
	lua_pushnil(L);
	bind_err_push(L, data, (struct json_slice){NULL, 0});
	return 2;
}

static void on_done(void *data, const struct http_result *result)
{
	struct fetch *fetch = data;
	struct task *task = fetch->task;
	bool write = fetch->write;
	struct err err;
	alloc_object_free(&fetch_type, fetch);
	if (!result->failure) {
		task_wake(task, push_answer, (void *)result);
		return;
	}
	status_of_result(result, write, &err);
	task_wake(task, push_failure, &err);
}

static void on_cancel(void *data)
{
	struct fetch *fetch = data;
	http_cancel(fetch->http);
	alloc_object_free(&fetch_type, fetch);
}

/* --- the request --- */

static bool is_token(const char *text)
{
	return *text &&
	       !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~")];
}

/* What says where the request ends is not the script's to say. */
static bool is_framing(const char *name)
{
	static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Connection", "Upgrade"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

static const char *header_name(lua_State *L, int index)
{
	const char *name = lua_type(L, index) == LUA_TSTRING ? bind_text(L, index, "headers") : NULL;
	if (!name || !is_token(name))
		bind_misuse(L, "k8s.http.request: a header's name is letters, digits and -");
	if (is_framing(name))
		bind_misuse(L, "k8s.http.request: the header %s can't be set", name);
	return name;
}

/* Its value is shown to nobody: it may be a secret. */
static void add_line(lua_State *L, const char *name, const char *value, int lines)
{
	size_t count = lua_objlen(L, lines);
	if (!value || strpbrk(value, "\r\n"))
		bind_misuse(L, "k8s.http.request: the header %s must be one line of text, or a list of such", name);
	if (count == MOST_HEADERS)
		bind_misuse(L, "k8s.http.request: more than %d headers", MOST_HEADERS);
	lua_pushfstring(L, "%s: %s", name, value);
	lua_rawseti(L, lines, (int)count + 1);
}

/* The value is on top. */
static void add_header(lua_State *L, const char *name, int lines)
{
	if (!lua_istable(L, -1)) {
		add_line(L, name, bind_text(L, -1, name), lines);
		return;
	}
	for (int i = 1; i <= (int)lua_objlen(L, -1); i++) {
		lua_rawgeti(L, -1, i);
		add_line(L, name, bind_text(L, -1, name), lines);
		lua_pop(L, 1);
	}
}

/* Leaves a list of lines on the stack; whether one has that name. */
static bool push_lines(lua_State *L, const char *wanted)
{
	bool found = false;
	lua_newtable(L);
	int lines = lua_gettop(L);
	lua_pushliteral(L, "headers");
	lua_rawget(L, 1);
	if (!lua_isnil(L, -1) && !lua_istable(L, -1))
		bind_misuse(L, "k8s.http.request: headers must be a table { name = value }");
	if (lua_istable(L, -1)) {
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
			const char *name = header_name(L, -2);
			found = found || strcasecmp(name, wanted) == 0;
			add_header(L, name, lines);
		}
	}
	lua_settop(L, lines);
	return found;
}

/* An array of the lines, ended by NULL, which the two values on the stack keep alive. */
static const char *const *push_headers(lua_State *L)
{
	if (!push_lines(L, "User-Agent")) {
		lua_pushliteral(L, "User-Agent: perilune/" PERILUNE_VERSION);
		lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
	}
	size_t count = lua_objlen(L, -1);
	const char **headers = lua_newuserdata(L, (count + 1) * sizeof(*headers));
	for (size_t i = 0; i < count; i++) {
		lua_rawgeti(L, -2, (int)i + 1);
		headers[i] = lua_tostring(L, -1);
		lua_pop(L, 1);
	}
	headers[count] = NULL;
	return headers;
}

static void read_body(lua_State *L, struct http_request *request)
{
	lua_pushliteral(L, "body");
	lua_rawget(L, 1);
	if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
		bind_misuse(L, "k8s.http.request: body must be a string, not a %s (k8s.json.encode makes one)",
			    luaL_typename(L, -1));
	request->body = lua_tolstring(L, -1, &request->body_length);
	if (request->body_length > LONGEST_BODY)
		bind_misuse(L, "k8s.http.request: the body is larger than 16 MiB");
}

static bool is_web(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static int refuse_url(lua_State *L)
{
	struct err err;
	err_set(&err, "BadRequest", "the URL begins with neither http:// nor https://");
	return push_failure(L, &err);
}

static bool is_write(const char *method)
{
	return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static int start(lua_State *L, struct task *task, const struct http_request *request)
{
	static const struct http_events events = {.on_done = on_done};
	struct fetch *fetch = alloc_object(&fetch_type, sizeof(*fetch));
	fetch->task = task;
	fetch->write = is_write(request->method);
	fetch->http = http_start(host_outside(state_of(L)->host), request, &events, fetch);
	return task_wait(L, task, on_cancel, fetch);
}

/* request{ url =, method =, headers =, body =, timeout = } -> { status =, headers =, body = } | nil, err. */
static int l_request(lua_State *L)
{
	static const char *const known[] = {"url", "method", "headers", "body", "timeout", NULL};
	lua_settop(L, 1);
	bind_check_options(L, 1, "k8s.http.request", known);
	const char *url = bind_string_option(L, 1, "url"), *method = bind_string_option(L, 1, "method");
	if (!url)
		return bind_misuse(L, "k8s.http.request: url is missing");
	if (method && !is_token(method))
		return bind_misuse(L, "k8s.http.request: method must be a word such as \"POST\"");
	struct http_request request = {.url = url,
				       .method = method ? method : "GET",
				       .timeout = bind_number_option(L, 1, "timeout", DEFAULT_TIMEOUT),
				       .limit = LONGEST_BODY,
				       .fields = true};
	request.headers = push_headers(L);
	read_body(L, &request);
	struct task *task = task_current(L, "k8s.http.request");
	return is_web(url) ? start(L, task, &request) : refuse_url(L);
}

static const luaL_Reg functions[] = {{"request", l_request}, {NULL, NULL}};

void bind_http_open(lua_State *L)
{
	lua_newtable(L);
	luaL_register(L, NULL, functions);
	lua_setfield(L, -2, "http");
}
