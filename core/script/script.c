#include "script/script.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cache/barrier.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/consumer.h"
#include "script/hook.h"
#include "script/host_private.h"
#include "script/library.h"
#include "script/reconciler.h"

ALLOC_TYPE(script_type, "script");
ALLOC_TYPE(factory_type, "script factory");
ALLOC_TYPE(watch_type, "script watch");
ALLOC_TYPE(call_type, "script call");

/* Keeps a script_factory told about one of its informers. */
struct script_watch {
	struct list node; /* in factory->watched */
	struct script_factory *factory;
	struct informer *informer; /* counted */
	struct informer_observer observer;
};

/* --- making and freeing --- */

static void cut(void *data);

static struct script *make(struct host *host, const char *name, bool full, struct err *err)
{
	const struct host_options *options = host_get_options(host);
	struct state_options limits = {.name = name,
				       .host = host,
				       .memory_limit = full ? 0 : options->memory_limit,
				       .time_limit = full ? 0 : options->time_limit,
				       .jit = options->jit,
				       .silent = full,
				       .full_library = full || options->unsafe_libs};
	struct state *state = state_new(&limits, err);
	if (!state)
		return NULL;
	struct script *script = alloc_object(&script_type, sizeof(*script));
	script->host = host;
	script->loop = host_loop(host);
	script->state = state;
	script->name = alloc_string(name);
	script->generation = 1;
	files_init(&script->files);
	loop_job_init(&script->cut, cut, script);
	state->owner = script;
	buf_init(&script->needs, 0);
	struct list *lists[] = {&script->node,       &script->factories,   &script->consumers, &script->mains,
				&script->on_synced,  &script->on_shutdown, &script->timers,    &script->waits,
				&script->hooks,      &script->indexes,     &script->metrics,   &script->leaving,
				&script->reconcilers};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		list_init(lists[i]);
	return script;
}

struct source {
	const char *text, *chunk;
	size_t length;
	const char *const *arguments; /* of specs */
	size_t count;
	struct err *err;
};

static int load_main(lua_State *L, void *data)
{
	struct source *source = data;
	if (library_load(L, source->text, source->length, source->chunk, source->err) < 0)
		return -1;
	return call_function(L, 0, 0, source->err);
}

/* Its k8s.state is there from the first line on; what becomes of it meanwhile follows when it takes the place. */
static void follow(struct script *script, struct script *before)
{
	struct err err;
	script->before = before;
	script->generation = before->generation + 1;
	if (bind_state_copy(before, script, &err))
		log_error(LOG_FIELDS({"script", script->name}, {"error", err.message}),
			  "k8s.state can't be handed on: it begins empty");
}

static int run_main(struct script *script, const char *path, struct err *err)
{
	struct source source = {.err = err};
	files_note(&script->files, path);
	char *text = library_read(path, &source.length, err);
	if (!text)
		return -1;
	char *chunk = alloc_format("@%s", path);
	source.text = text;
	source.chunk = chunk;
	script->state->doing = "top level";
	int result = call_plain(script->state, load_main, &source, err);
	script->state->doing = NULL;
	alloc_free(chunk);
	alloc_free(text);
	return result;
}

struct script *script_new(struct host *host, const char *name, const char *path, const char *folder,
			  struct script *before, struct err *err)
{
	struct script *script = make(host, name, false, err);
	if (!script)
		return NULL;
	script->path = alloc_string(path);
	script->folder = alloc_string(folder);
	if (before)
		follow(script, before);
	if (run_main(script, path, err) == 0)
		return script;
	script_free(script);
	return NULL;
}

static int l_set_exit_code(lua_State *L)
{
	struct script *script = script_of(L);
	host_set_exit_code(script->host, (int)luaL_checkinteger(L, 1));
	return 0;
}

static int load_specs(lua_State *L, void *data)
{
	struct source *source = data;
	bind_testing_open(L);
	lua_getglobal(L, "require");
	lua_pushliteral(L, "perilune.specs");
	if (call_function(L, 1, 1, source->err) < 0)
		return -1;
	lua_createtable(L, (int)source->count, 0);
	for (size_t i = 0; i < source->count; i++) {
		lua_pushstring(L, source->arguments[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_pushcfunction(L, l_set_exit_code);
	lua_pushstring(L, host_get_options(script_of(L)->host)->rights_file);
	return call_function(L, 3, 0, source->err);
}

struct script *script_new_specs(struct host *host, const char *const *arguments, size_t count, struct err *err)
{
	struct script *script = make(host, "specs", true, err);
	if (!script)
		return NULL;
	script->specs = true;
	script->path = alloc_string("specs");
	struct source source = {.arguments = arguments, .count = count, .err = err};
	if (call_plain(script->state, load_specs, &source, err) == 0)
		return script;
	script_free(script);
	return NULL;
}

static void free_call(struct script_call *call)
{
	list_remove(&call->node);
	loop_timer_stop(call->script->loop, &call->timer);
	loop_job_cancel(&call->job);
	alloc_object_free(&call_type, call);
}

static void free_calls(struct list *calls)
{
	while (!list_is_empty(calls))
		free_call(LIST_ENTRY(calls->next, struct script_call, node));
}

static void unwatch(struct script_factory *factory)
{
	struct list *node;
	while ((node = list_pop(&factory->watched))) {
		struct script_watch *watch = LIST_ENTRY(node, struct script_watch, node);
		factory->script->registered--;
		informer_unobserve(&watch->observer);
		informer_unref(watch->informer);
		alloc_object_free(&watch_type, watch);
	}
}

static void free_factory(struct script_factory *factory)
{
	unwatch(factory);
	list_remove(&factory->node);
	factory_free(factory->factory);
	alloc_free(factory->namespace);
	alloc_object_free(&factory_type, factory);
}

/* Tasks end first, while all that they hold is there; then what is called from outside; the state's userdata last. */
void script_free(struct script *script)
{
	if (!script)
		return;
	list_remove(&script->node);
	script->ending = script->freeing = true;
	task_cancel_all(script->state);
	while (!list_is_empty(&script->consumers))
		consumer_free(consumer_of_node(script->consumers.next));
	while (!list_is_empty(&script->reconcilers))
		reconciler_free(reconciler_of_node(script->reconcilers.next));
	struct list *calls[] = {&script->mains, &script->on_synced, &script->on_shutdown, &script->timers};
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		free_calls(calls[i]);
	loop_job_cancel(&script->cut);
	bind_informer_end_all(script);
	bind_index_end_all(script);
	hook_end_all(script);
	state_free(script->state);
	bind_metric_end_all(script);
	while (!list_is_empty(&script->factories))
		free_factory(LIST_ENTRY(script->factories.next, struct script_factory, node));
	buf_fini(&script->needs);
	alloc_free(script->name);
	alloc_free(script->path);
	alloc_free(script->folder);
	files_fini(&script->files);
	alloc_object_free(&script_type, script);
}

struct script *script_of(lua_State *L)
{
	return state_of(L)->owner;
}

/* --- modules beside it --- */

static bool is_file(const char *path)
{
	struct stat found;
	return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

char *script_module_path(const struct script *script, const char *name)
{
	if (!script->folder || strchr(name, '/') || strstr(name, "..") || name[0] == '.' || name[0] == '\0')
		return NULL;
	char *place = alloc_format("%s/%s", script->folder, name);
	for (char *c = place + strlen(script->folder) + 1; *c; c++)
		if (*c == '.')
			*c = '/';
	char *path = alloc_format("%s.lua", place);
	if (!is_file(path)) {
		alloc_free(path);
		path = alloc_format("%s/init.lua", place);
	}
	alloc_free(place);
	if (is_file(path))
		return path;
	alloc_free(path);
	return NULL;
}

/* --- factories --- */

static void on_informer_change(void *data)
{
	struct script_watch *watch = data;
	struct script *script = watch->factory->script;
	if (script->open && informer_has_synced(watch->informer))
		script_open_ready(script);
}

struct script_factory *script_factory_new(struct script *script)
{
	struct script_factory *factory = alloc_object(&factory_type, sizeof(*factory));
	factory->script = script;
	factory->defaults = LUA_NOREF;
	script->registered++;
	list_init(&factory->watched);
	factory->factory = factory_new(host_pool(script->host));
	list_add_tail(&script->factories, &factory->node);
	return factory;
}

struct script_factory *script_default_factory(struct script *script)
{
	if (!script->default_factory) {
		script->default_factory = script_factory_new(script);
		script->default_factory->namespace = alloc_string(host_get_options(script->host)->namespace);
	}
	return script->default_factory;
}

static bool is_watched(const struct script_factory *factory, const struct informer *informer)
{
	LIST_EACH (&factory->watched, node)
		if (LIST_ENTRY(node, struct script_watch, node)->informer == informer)
			return true;
	return false;
}

struct informer *script_factory_informer(struct script_factory *factory, const struct informer_spec *spec,
					 struct err *err)
{
	struct informer *informer = factory_informer(factory->factory, spec, err);
	if (!informer || is_watched(factory, informer))
		return informer;
	struct script_watch *watch = alloc_object(&watch_type, sizeof(*watch));
	factory->script->registered++;
	watch->factory = factory;
	watch->informer = informer_ref(informer);
	watch->observer.on_change = on_informer_change;
	watch->observer.data = watch;
	informer_observe(informer, &watch->observer);
	list_add_tail(&factory->watched, &watch->node);
	return informer;
}

void script_factory_start(struct script_factory *factory)
{
	if (factory_is_shut_down(factory->factory))
		return;
	factory_start(factory->factory);
	script_open_ready(factory->script);
}

/* Its handlers get nothing more: an informer that another factory keeps goes on for that one alone. */
void script_factory_shutdown(struct script_factory *factory)
{
	LIST_EACH (&factory->script->consumers, node) {
		struct consumer *consumer = consumer_of_node(node);
		if (consumer_factory(consumer) == factory)
			consumer_remove(consumer);
	}
	LIST_EACH (&factory->script->reconcilers, reconciler_node)
		reconciler_drop_factory(reconciler_of_node(reconciler_node), factory);
	unwatch(factory);
	factory_shutdown(factory->factory);
	bind_factory_end_waits(factory->script, factory);
}

bool script_factory_has_synced(const struct script_factory *factory)
{
	LIST_EACH (&factory->watched, node) {
		const struct informer *informer = LIST_ENTRY(node, struct script_watch, node)->informer;
		bool awaited = informer_started(informer) && factory_needs(factory->factory, informer);
		if (awaited && !informer_has_synced(informer))
			return false;
	}
	return true;
}

bool script_has_synced(const struct script *script)
{
	LIST_EACH (&script->factories, factory_node) {
		const struct script_factory *factory = LIST_ENTRY(factory_node, struct script_factory, node);
		LIST_EACH (&factory->watched, node)
			if (!informer_has_synced(LIST_ENTRY(node, struct script_watch, node)->informer))
				return false;
	}
	return true;
}

/* --- calls --- */

struct run {
	struct script *script;
	int reference;
	const char *what;
	void (*on_end)(void *data, const struct err *err);
	void *data;
};

static int push_function(lua_State *L, void *data)
{
	lua_rawgeti(L, LUA_REGISTRYINDEX, ((struct run *)data)->reference);
	return 0;
}

static void on_run_end(void *data, const struct err *err)
{
	struct run run = *(struct run *)data;
	alloc_free(data);
	if (err && !run.script->freeing)
		script_log_error(run.script, err, run.what, NULL, NULL);
	if (run.on_end)
		run.on_end(run.data, err);
	script_call_ended(run.script);
}

static void stop_events(struct script *script)
{
	script->ending = true;
	LIST_EACH (&script->consumers, node)
		consumer_stop(consumer_of_node(node));
	LIST_EACH (&script->timers, timer_node)
		loop_timer_stop(script->loop, &LIST_ENTRY(timer_node, struct script_call, node)->timer);
}

static void stop_calls(struct script *script)
{
	stop_events(script);
	LIST_EACH (&script->reconcilers, node)
		reconciler_stop(reconciler_of_node(node));
}

void script_cancel(struct script *script)
{
	stop_calls(script);
	script->freeing = true;
	task_cancel_all(script->state);
}

/* A job of its own, as a parked script is noticed in the middle of events. */
static void cut(void *data)
{
	struct script *script = data;
	LIST_EACH (&script->consumers, node)
		consumer_close(consumer_of_node(node));
	script->freeing = true;
	task_cancel_all(script->state);
}

void script_note_state(struct script *script)
{
	if (!script->state->parked || script->parked)
		return;
	script->parked = true;
	log_error(LOG_FIELDS({"script", script->name}, {"error", script->state->parked}),
		  "the script is parked: nothing of it is called until it is loaded anew");
	if (script->ending)
		return;
	stop_events(script);
	LIST_EACH (&script->reconcilers, node)
		reconciler_pause(reconciler_of_node(node));
	loop_post(script->loop, &script->cut);
	host_settled(script->host);
}

void script_call_ended(struct script *script)
{
	script->tasks--;
	script_note_state(script);
	host_settled(script->host);
}

/* Runs a registered function as a task with no arguments; errors are logged with what. on_end may be NULL. */
static void run_function(struct script_call *call, const char *what, void (*on_end)(void *data, const struct err *err),
			 void *data)
{
	struct script *script = call->script;
	struct run *run = alloc_zero(sizeof(*run));
	*run = (struct run){script, call->reference, what, on_end, data};
	script->tasks++;
	struct task_options options = {
	    .push = push_function, .on_end = on_run_end, .data = run, .leader = call->leader, .what = what};
	task_start(script->state, &options);
}

static void on_every_end(void *data, const struct err *err)
{
	(void)err;
	struct script_call *call = data;
	if (!call->script->ending)
		loop_timer_start(call->script->loop, &call->timer, call->interval);
}

static void on_every(void *data)
{
	struct script_call *call = data;
	if (!call->script->ending)
		run_function(call, "k8s.every", on_every_end, call);
}

static void on_synced(void *data)
{
	struct script_call *call = data;
	if (!call->script->ending)
		run_function(call, "k8s.on_synced", NULL, NULL);
}

/* What is registered before the script is open, while it opens, or later, begins here; each once. */
static void begin(struct script_call *call, const struct list *list)
{
	if (list == &call->script->timers && (!call->leader || host_is_leader(call->script->host)))
		loop_timer_start(call->script->loop, &call->timer, call->interval);
	if (list == &call->script->on_synced)
		loop_post(call->script->loop, &call->job);
}

static void begin_all(struct list *calls)
{
	LIST_EACH (calls, node)
		begin(LIST_ENTRY(node, struct script_call, node), calls);
}

void script_add_call(struct script *script, struct list *list, int reference, double interval, bool leader)
{
	struct script_call *call = alloc_object(&call_type, sizeof(*call));
	call->script = script;
	script->registered++;
	call->reference = reference;
	call->interval = interval;
	call->leader = leader;
	loop_timer_init(&call->timer, on_every, call);
	loop_job_init(&call->job, on_synced, call);
	list_add_tail(list, &call->node);
	if (script->open)
		begin(call, list);
}

/* --- the steps of the host --- */

static void on_main_end(void *data, const struct err *err)
{
	struct script *script = data;
	if (script->specs)
		host_specs_ended(script->host, err);
}

void script_start(struct script *script, struct barrier *barrier)
{
	script->started = true;
	if (script_is_empty(script))
		log_warn(LOG_FIELDS({"script", script->name}),
			 "the script registers nothing, so nothing of it will be called");
	LIST_EACH (&script->mains, node)
		run_function(LIST_ENTRY(node, struct script_call, node), "k8s.main", on_main_end, script);
	LIST_EACH (&script->factories, factory_node) {
		struct script_factory *factory = LIST_ENTRY(factory_node, struct script_factory, node);
		script_factory_start(factory);
		factory_add_to_barrier(factory->factory, barrier);
	}
}

void script_opened(struct script *script)
{
	script->open = true;
	script->before = NULL;
	LIST_EACH (&script->reconcilers, node)
		reconciler_take(reconciler_of_node(node));
	if (script->parked)
		return;
	begin_all(&script->on_synced); /* before the handlers get their first events */
	begin_all(&script->timers);
	script_open_ready(script);
}

bool script_has_leader(const struct script *script)
{
	LIST_EACH (&script->reconcilers, node)
		if (reconciler_is_leaders(reconciler_of_node(node)))
			return true;
	LIST_EACH (&script->timers, node)
		if (LIST_ENTRY(node, struct script_call, node)->leader)
			return true;
	return false;
}

void script_leading(struct script *script)
{
	if (script->ending || !script->open)
		return;
	LIST_EACH (&script->timers, node) {
		struct script_call *call = LIST_ENTRY(node, struct script_call, node);
		if (call->leader)
			begin(call, &script->timers);
	}
	script_open_ready(script);
}

void script_open_ready(struct script *script)
{
	if (!script->open)
		return;
	LIST_EACH (&script->consumers, node) {
		struct consumer *consumer = consumer_of_node(node);
		struct informer *informer = consumer_informer(consumer);
		if (informer_has_synced(informer) && script_factory_has_synced(consumer_factory(consumer)))
			consumer_open(consumer);
	}
	LIST_EACH (&script->reconcilers, reconciler_node)
		reconciler_open_ready(reconciler_of_node(reconciler_node));
}

void script_close(struct script *script)
{
	LIST_EACH (&script->consumers, node)
		consumer_close(consumer_of_node(node));
}

bool script_is_drained(const struct script *script)
{
	LIST_EACH (&script->consumers, node)
		if (!consumer_is_drained(consumer_of_node(node)))
			return false;
	LIST_EACH (&script->reconcilers, reconciler_node)
		if (!reconciler_is_drained(reconciler_of_node(reconciler_node)))
			return false;
	return true;
}

size_t script_depth(const struct script *script)
{
	size_t depth = 0;
	if (script->parked)
		return 0;
	LIST_EACH (&script->consumers, node)
		depth += consumer_depth(consumer_of_node(node));
	return depth;
}

void script_shutdown(struct script *script)
{
	stop_calls(script);
	bind_factory_end_waits(script, NULL);
	if (script->parked)
		return;
	LIST_EACH (&script->on_shutdown, node)
		run_function(LIST_ENTRY(node, struct script_call, node), "k8s.on_shutdown", NULL, NULL);
}

bool script_is_empty(const struct script *script)
{
	const struct list *lists[] = {&script->factories, &script->mains, &script->on_synced, &script->on_shutdown,
				      &script->timers};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (!list_is_empty(lists[i]))
			return false;
	return true;
}

bool script_is_idle(const struct script *script)
{
	return script->tasks == 0;
}

/* --- errors --- */

const char *script_error_place(const struct err *err, char *out, size_t size)
{
	const char *message = err->message, *colon = strstr(message, ".lua:");
	size_t digits = colon ? strspn(colon + 5, "0123456789") : 0;
	size_t length = colon ? (size_t)(colon - message) + 5 + digits : 0;
	if (digits == 0 || length >= size || memchr(message, ' ', length))
		return NULL;
	memcpy(out, message, length);
	out[length] = '\0';
	return out;
}

/* A copy; NULL where it has none. */
static char *namespace_of(const struct object *object)
{
	size_t length = 0;
	const char *namespace = object ? object_namespace(object, &length) : NULL;
	return length ? alloc_text(namespace, length) : NULL;
}

void script_log_error(struct script *script, const struct err *err, const char *what, const struct informer *informer,
		      const struct object *object)
{
	char place[256], *namespace = namespace_of(object);
	script->errors++;
	log_error(LOG_FIELDS({"script", script->name}, {"informer", informer ? informer_label(informer) : NULL},
			     {"namespace", namespace}, {"name", object ? object_name(object) : NULL},
			     {"file", script_error_place(err, place, sizeof(place))}, {"error", err->message}),
		  "%s failed", what);
	alloc_free(namespace);
}
