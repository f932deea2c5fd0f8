/* bind_client: one API call as a yielding function, and the API client that is built on it, in lua/perilune/: call.lua,
 * client.lua. */
#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/factory.h"
#include "kube/discovery.h"
#include "kube/dryrun.h"
#include "kube/request.h"
#include "kube/status.h"
#include "script/bind.h"
#include "script/host_private.h"
#include "script/library.h"
#include "script/task.h"
#include "script/value.h"
#include "work/controller.h"

ALLOC_TYPE(call_type, "API call");

/* In seconds. client-go and kubectl have none, but a script should not hang for ever. */
#define DEFAULT_TIMEOUT 60

struct api_call {
	struct task *task;
	struct cluster *cluster;
	struct pool *pool;
	struct discovery_lookup *lookup; /* while the kind is looked up */
	struct request *request;         /* while the server is asked */
	const struct resource *resource; /* then */
	bool dry_run;
	char *method, *api_version, *kind, *namespace, *name, *subresource, *content_type;
	struct buf query, body;
	double timeout;
};

static void free_call(struct api_call *call)
{
	char *texts[] = {call->method, call->api_version, call->kind,        call->namespace,
			 call->name,   call->subresource, call->content_type};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		alloc_free(texts[i]);
	buf_fini(&call->query);
	buf_fini(&call->body);
	alloc_object_free(&call_type, call);
}

static void on_cancel(void *data)
{
	struct api_call *call = data;
	if (call->lookup)
		discovery_cancel(call->lookup);
	if (call->request)
		request_cancel(call->request);
	free_call(call);
}

struct answer {
	const struct err *err;
	struct json_slice body;
};

static int push_answer(lua_State *L, void *data)
{
	const struct answer *answer = data;
	if (!answer->err) {
		value_push(L, answer->body);
		return 1;
	}
	lua_pushnil(L);
	bind_err_push(L, answer->err, status_causes(answer->body));
	return 2;
}

static void finish(struct api_call *call, const struct err *err, struct json_slice body)
{
	struct task *task = call->task;
	struct answer answer = {err, body};
	free_call(call);
	task_wake(task, push_answer, &answer);
}

/* The caches show it before the script goes on. */
static void note_write(const struct api_call *call, struct json_slice answer)
{
	struct write write = {call->resource, call->method, call->namespace, call->name, answer};
	if (!call->dry_run)
		pool_note_write(call->pool, &write);
}

/* For the key of the reconcile that wrote: the event of that version is no news to it. */
static void note_version(const struct api_call *call, struct json_slice answer)
{
	struct work *work = task_work(call->task);
	if (!work || call->dry_run || !strcmp(call->method, "GET"))
		return;
	char *version = json_string_copy(json_get(json_get(answer, "metadata"), "resourceVersion"));
	if (version)
		work_wrote(work, version);
	alloc_free(version);
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct api_call *call = data;
	call->request = NULL;
	if (!err) {
		note_write(call, body);
		note_version(call, body);
	}
	finish(call, err, body);
}

static const struct request_events events = {.on_done = on_done};

static int check_namespace(const struct api_call *call, const struct resource *resource, struct err *err)
{
	bool collection = !call->name && strcmp(call->method, "GET") == 0;
	if (resource->namespaced && !call->namespace && !collection)
		return err_set(err, "BadRequest", "%s %s is namespaced: give a namespace", call->api_version,
			       resource->kind);
	return 0;
}

static void start_request(struct api_call *call, const struct resource *resource)
{
	struct buf path;
	buf_init(&path, 0);
	resource_path(resource, resource->namespaced ? call->namespace : NULL, call->name, call->subresource, &path);
	struct request_options options = {.method = call->method,
					  .path = buf_text(&path),
					  .query = call->query.length ? buf_text(&call->query) : NULL,
					  .content_type = call->content_type,
					  .body = call->body.length ? call->body.data : NULL,
					  .body_length = call->body.length,
					  .timeout = call->timeout,
					  .leader = task_is_leader(call->task)};
	call->resource = resource;
	call->dry_run = dryrun_is_in(options.query) || dryrun_holds(call->cluster, options.path);
	call->request = request_start(call->cluster, &options, &events, call);
	buf_fini(&path);
}

static void on_found(void *data, const struct resource *resource, const struct err *err)
{
	struct api_call *call = data;
	struct err misuse;
	call->lookup = NULL;
	if (!err && check_namespace(call, resource, &misuse) < 0)
		err = &misuse;
	if (err)
		finish(call, err, (struct json_slice){NULL, 0});
	else
		start_request(call, resource);
}

static char *copy_option(lua_State *L, const char *name)
{
	return alloc_string(bind_string_option(L, 1, name));
}

/* Every option is checked here, before the first C resource exists. */
static void check_call(lua_State *L)
{
	static const char *const strings[] = {"method", "namespace", "name", "subresource", "content_type"};
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		bind_string_option(L, 1, strings[i]);
	if (!bind_string_option(L, 1, "apiVersion") || !bind_string_option(L, 1, "kind"))
		bind_misuse(L, "a reference needs apiVersion and kind");
	bind_number_option(L, 1, "timeout", DEFAULT_TIMEOUT);
	lua_getfield(L, 1, "query");
	luaL_checktype(L, -1, LUA_TTABLE);
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		if (!bind_text(L, -2, "query") || !bind_text(L, -1, lua_tostring(L, -2)))
			bind_misuse(L, "query: names and values are strings");
	lua_pop(L, 1);
}

static void encode_body(lua_State *L, struct buf *scratch)
{
	struct err err;
	buf_reset(scratch);
	lua_getfield(L, 1, "body");
	if (!lua_isnil(L, -1) && value_encode(L, -1, scratch, &err) < 0)
		bind_misuse(L, "the object can't be sent: %s", err.message);
	lua_pop(L, 1);
}

static void fill_query(lua_State *L, struct buf *query)
{
	lua_getfield(L, 1, "query");
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		request_query_add(query, lua_tostring(L, -2), lua_tostring(L, -1));
	lua_pop(L, 1);
}

static struct api_call *make_call(lua_State *L, struct task *task, struct cluster *cluster, const struct buf *body)
{
	struct api_call *call = alloc_object(&call_type, sizeof(*call));
	call->task = task;
	call->cluster = cluster;
	call->method = copy_option(L, "method");
	call->api_version = copy_option(L, "apiVersion");
	call->kind = copy_option(L, "kind");
	call->namespace = copy_option(L, "namespace");
	call->name = copy_option(L, "name");
	call->subresource = copy_option(L, "subresource");
	call->content_type = copy_option(L, "content_type");
	call->timeout = bind_number_option(L, 1, "timeout", DEFAULT_TIMEOUT);
	buf_init(&call->query, 0);
	buf_init(&call->body, 0);
	fill_query(L, &call->query);
	buf_append(&call->body, body->data, body->length);
	return call;
}

/* request{ what=, method=, apiVersion=, kind=, namespace=, name=, subresource=, query={}, body=, content_type=,
 * timeout= } -> value | nil, err. */
static int l_request(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	struct host *host = state_of(L)->host;
	const char *what = bind_string_option(L, 1, "what");
	check_call(L);
	struct buf *scratch = &state_of(L)->scratch;
	encode_body(L, scratch);
	struct task *task = task_current(L, what);
	struct cluster *cluster = host_cluster(host);
	if (!cluster) {
		lua_pushnil(L);
		bind_err_push(L, &host_get_options(host)->no_config, (struct json_slice){NULL, 0});
		return 2;
	}
	struct api_call *call = make_call(L, task, cluster, scratch);
	call->pool = host_pool(host);
	call->lookup = discovery_find(cluster->discovery, call->api_version, call->kind, NULL, on_found, call);
	return task_wait(L, task, on_cancel, call);
}

static int l_default_namespace(lua_State *L)
{
	lua_pushstring(L, host_get_options(state_of(L)->host)->namespace);
	return 1;
}

/* check_options(table, what, { known, ... }): raises for an unknown name, at the caller of the API function. */
static int l_check_options(lua_State *L)
{
	const char *known[24] = {NULL};
	luaL_checktype(L, 3, LUA_TTABLE);
	size_t count = lua_objlen(L, 3);
	for (size_t i = 0; i < count && i < sizeof(known) / sizeof(*known) - 1; i++) {
		lua_rawgeti(L, 3, (int)i + 1);
		known[i] = lua_tostring(L, -1);
		lua_pop(L, 1);
	}
	bind_check_options(L, 1, luaL_checkstring(L, 2), known);
	return 0;
}

/* misuse(message) raises it at the script's own line. */
static int l_misuse(lua_State *L)
{
	return bind_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* err(reason, message): what an API call returns for an answer that is none. */
static int l_err(lua_State *L)
{
	struct err err;
	err_set(&err, luaL_checkstring(L, 1), "%s", luaL_checkstring(L, 2));
	bind_err_push(L, &err, (struct json_slice){NULL, 0});
	return 1;
}

static const luaL_Reg core[] = {{"request", l_request},
				{"default_namespace", l_default_namespace},
				{"check_options", l_check_options},
				{"misuse", l_misuse},
				{"err", l_err},
				{NULL, NULL}};

void bind_client_push_core(lua_State *L)
{
	lua_newtable(L);
	luaL_register(L, NULL, core);
}

/* Each gets (k8s, core, calls): what it adds its functions to, the above, and what call.lua shares with the others. */
void bind_client_run(lua_State *L, int k8s, int base)
{
	static const char *const parts[] = {"perilune.call", "perilune.client"};
	lua_newtable(L);
	int calls = lua_gettop(L);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		lua_pushvalue(L, k8s);
		lua_pushvalue(L, base);
		lua_pushvalue(L, calls);
		library_run(L, parts[i], 3);
	}
	lua_pop(L, 1);
}

void bind_client_open(lua_State *L)
{
	int k8s = lua_gettop(L);
	bind_client_push_core(L);
	bind_client_run(L, k8s, k8s + 1);
	lua_pop(L, 1);
}
