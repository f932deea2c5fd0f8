#include "script/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/exchange.h"
#include "script/bind_sandbox.h"
#include "script/call.h"
#include "script/library.h"
#include "script/state.h"

ALLOC_TYPE(sandbox_type, "sandbox");

#define BODY_LIMIT ((size_t)3 << 20) /* the API server's own */

struct sandbox {
	struct state *state;
	struct exchange *exchange;
	struct bind_alarm alarm;
	char *url, *kubeconfig;
	char *cert, *key; /* PEM texts, which the exchange borrows; NULL: plain HTTP */
	int handlers;     /* lua/perilune/sandbox/host.lua's table, in the registry; LUA_NOREF while it is shut */
};

/* --- into Lua --- */

/* One call of a handler by its name. */
struct entry {
	struct sandbox *sandbox;
	const char *handler;
	struct exchange_request *request; /* for "request" */
	struct json_slice text;           /* .data NULL: none */
	struct buf *out;                  /* for the text that is returned; or NULL */
	struct err *err;
};

static struct json_slice slice_of(const char *text)
{
	return (struct json_slice){text, strlen(text)};
}

static void push_handler(lua_State *L, const struct entry *entry)
{
	lua_rawgeti(L, LUA_REGISTRYINDEX, entry->sandbox->handlers);
	lua_getfield(L, -1, entry->handler);
	lua_remove(L, -2);
}

/* The function for the request's end is kept beside the handlers, under the request's address. */
static int run_request(lua_State *L, void *data)
{
	struct entry *entry = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, entry->sandbox->handlers);
	lua_pushlightuserdata(L, entry->request);
	push_handler(L, entry);
	if (call_function(L, bind_sandbox_push_request(L, entry->request), 1, entry->err))
		return -1;
	lua_rawset(L, -3);
	return 0;
}

static int run_gone(lua_State *L, void *data)
{
	struct entry *entry = data;
	lua_rawgeti(L, LUA_REGISTRYINDEX, entry->sandbox->handlers);
	lua_pushlightuserdata(L, entry->request);
	lua_rawget(L, -2);
	lua_pushlightuserdata(L, entry->request);
	lua_pushnil(L);
	lua_rawset(L, -4);
	return lua_isfunction(L, -1) ? call_function(L, 0, 0, entry->err) : 0;
}

static int run_plain(lua_State *L, void *data)
{
	struct entry *entry = data;
	push_handler(L, entry);
	if (entry->text.data)
		lua_pushlstring(L, entry->text.data, entry->text.length);
	if (call_function(L, entry->text.data ? 1 : 0, 1, entry->err))
		return -1;
	size_t length;
	const char *text = lua_isstring(L, -1) ? lua_tolstring(L, -1, &length) : NULL;
	if (entry->out && text)
		buf_append(entry->out, text, length);
	return 0;
}

/* A failure in here is ours, and no client's. */
static int enter(struct sandbox *sandbox, call_fn fn, struct entry *entry)
{
	struct err err;
	entry->sandbox = sandbox;
	entry->err = &err;
	if (!call_plain(sandbox->state, fn, entry, &err))
		return 0;
	log_error(NULL, "sandbox: %s", err.message);
	return -1;
}

/* --- events --- */

static void on_request(void *data, struct exchange_request *request)
{
	struct entry entry = {.handler = "request", .request = request};
	if (enter(data, run_request, &entry))
		exchange_reset(request);
}

static void on_gone(void *data, struct exchange_request *request)
{
	struct entry entry = {.request = request};
	bind_sandbox_forget(request);
	enter(data, run_gone, &entry);
}

static void on_alarm(void *data)
{
	struct entry entry = {.handler = "alarm"};
	enter(data, run_plain, &entry);
}

/* --- making --- */

static int make_server(lua_State *L, void *data)
{
	struct entry *entry = data;
	lua_getglobal(L, "require");
	lua_pushliteral(L, "perilune.sandbox.host");
	if (call_function(L, 1, 1, entry->err))
		return -1;
	bind_sandbox_push_io(L, &entry->sandbox->alarm);
	lua_pushlstring(L, entry->text.data, entry->text.length);
	if (call_function(L, 2, 1, entry->err))
		return -1;
	entry->sandbox->handlers = luaL_ref(L, LUA_REGISTRYINDEX);
	return 0;
}

static int open_server(struct sandbox *sandbox, struct err *err)
{
	struct entry entry = {.sandbox = sandbox, .text = slice_of(strstr(sandbox->url, "//") + 2), .err = err};
	return call_plain(sandbox->state, make_server, &entry, err);
}

static int read_tls(struct sandbox *sandbox, const struct sandbox_options *options, struct err *err)
{
	size_t length;
	if (!options->cert_file)
		return 0;
	sandbox->cert = library_read(options->cert_file, &length, err);
	sandbox->key = sandbox->cert ? library_read(options->key_file, &length, err) : NULL;
	return sandbox->key ? 0 : -1;
}

static int open_exchange(struct sandbox *sandbox, const struct sandbox_options *from, struct err *err)
{
	const char *address = from->address;
	struct exchange_options options = {.address = address,
					   .cert = sandbox->cert,
					   .key = sandbox->key,
					   .body_limit = BODY_LIMIT,
					   .on_request = on_request,
					   .on_gone = on_gone,
					   .data = sandbox};
	sandbox->exchange = exchange_new(sandbox->alarm.loop, &options, err);
	if (!sandbox->exchange)
		return -1;
	const char *colon = strrchr(address, ':');
	bool all = colon == address;
	sandbox->url = alloc_format("%s://%.*s:%d", sandbox->cert ? "https" : "http", all ? 9 : (int)(colon - address),
				    all ? "127.0.0.1" : address, exchange_port(sandbox->exchange));
	return 0;
}

static int apply(struct sandbox *sandbox, const char *const *manifests, struct err *err)
{
	for (; manifests && *manifests; manifests++) {
		struct entry entry = {.sandbox = sandbox, .handler = "apply", .text = slice_of(*manifests), .err = err};
		if (call_plain(sandbox->state, run_plain, &entry, err))
			return err_prefix(err, "--manifests");
	}
	return 0;
}

/* ca: NULL over plain HTTP. A JSON string is one of YAML too. Any token will do; over HTTPS kubectl asks at the
 * terminal for a user's name where there is none, and over HTTP a token would be a reason to warn. */
static int write_config(int fd, const char *url, const char *ca)
{
	struct buf text;
	buf_init(&text, 0);
	buf_append_format(&text,
			  "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n"
			  "contexts:\n- name: sandbox\n  context: {cluster: sandbox, user: sandbox}\n"
			  "users:\n- name: sandbox\n  user: {%s}\n"
			  "clusters:\n- name: sandbox\n  cluster:\n    server: %s\n",
			  ca ? "token: sandbox" : "", url);
	if (ca) {
		buf_append_text(&text, "    certificate-authority: ");
		buf_append_json_string(&text, ca, strlen(ca));
		buf_append_text(&text, "\n");
	}
	int result = write(fd, text.data, text.length) == (ssize_t)text.length ? 0 : -1;
	buf_fini(&text);
	return result;
}

/* The kubeconfig stands in another folder than its reader. */
static int find_ca(const struct sandbox_options *options, char **path, struct err *err)
{
	const char *file = options->ca_file ? options->ca_file : options->cert_file;
	*path = file ? realpath(file, NULL) : NULL;
	return file && !*path ? err_set(err, "", "%s: %s", file, strerror(errno)) : 0;
}

static int make_kubeconfig(struct sandbox *sandbox, const char *ca, struct err *err)
{
	const char *folder = getenv("TMPDIR");
	char *path = alloc_format("%s/perilune-sandbox-XXXXXX", folder && *folder ? folder : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		err_set(err, "", "%s: %s", path, strerror(errno));
		alloc_free(path);
		return -1;
	}
	sandbox->kubeconfig = path;
	int result = write_config(fd, sandbox->url, ca);
	close(fd);
	return result ? err_set(err, "", "%s: %s", path, strerror(errno)) : 0;
}

static int start(struct sandbox *sandbox, const struct sandbox_options *options, struct err *err)
{
	char *ca = NULL;
	int result = read_tls(sandbox, options, err) || open_exchange(sandbox, options, err) ||
		     open_server(sandbox, err) || apply(sandbox, options->manifests, err) ||
		     find_ca(options, &ca, err) || make_kubeconfig(sandbox, ca, err);
	free(ca);
	return result ? -1 : 0;
}

static int drop_server(lua_State *L, void *data)
{
	struct sandbox *sandbox = data;
	luaL_unref(L, LUA_REGISTRYINDEX, sandbox->handlers);
	return 0;
}

/* Nothing of the server is called any more, so it is garbage whatever it still waited for. */
static void stop(struct sandbox *sandbox)
{
	exchange_free(sandbox->exchange);
	sandbox->exchange = NULL;
	loop_timer_stop(sandbox->alarm.loop, &sandbox->alarm.timer);
	if (sandbox->state)
		call_plain(sandbox->state, drop_server, sandbox, NULL);
	sandbox->handlers = LUA_NOREF;
	if (sandbox->kubeconfig)
		unlink(sandbox->kubeconfig);
	alloc_free(sandbox->kubeconfig);
	alloc_free(sandbox->url);
	alloc_free(sandbox->cert);
	alloc_free(sandbox->key);
	sandbox->kubeconfig = sandbox->url = sandbox->cert = sandbox->key = NULL;
}

struct sandbox *sandbox_new(struct loop *loop, const struct sandbox_options *options, struct err *err)
{
	struct state_options state = {.name = "sandbox", .silent = true, .full_library = true};
	struct sandbox *sandbox = alloc_object(&sandbox_type, sizeof(*sandbox));
	sandbox->alarm.loop = loop;
	sandbox->handlers = LUA_NOREF;
	loop_timer_init(&sandbox->alarm.timer, on_alarm, sandbox);
	sandbox->state = state_new(&state, err);
	if (!sandbox->state || start(sandbox, options, err)) {
		sandbox_free(sandbox);
		return NULL;
	}
	return sandbox;
}

int sandbox_restart(struct sandbox *sandbox, const struct sandbox_options *options, struct err *err)
{
	stop(sandbox);
	return start(sandbox, options, err);
}

void sandbox_free(struct sandbox *sandbox)
{
	if (!sandbox)
		return;
	stop(sandbox);
	state_free(sandbox->state);
	alloc_object_free(&sandbox_type, sandbox);
}

const char *sandbox_url(const struct sandbox *sandbox)
{
	return sandbox->url;
}

const char *sandbox_kubeconfig(const struct sandbox *sandbox)
{
	return sandbox->kubeconfig;
}

struct exchange *sandbox_exchange(struct sandbox *sandbox)
{
	return sandbox->exchange;
}

int sandbox_ask(struct sandbox *sandbox, const char *name, struct json_slice text, struct buf *out, struct err *err)
{
	struct entry entry = {.sandbox = sandbox, .handler = name, .text = text, .out = out, .err = err};
	return call_plain(sandbox->state, run_plain, &entry, err);
}
