#include "script/reconciler.h"

#include <lauxlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/labels.h"
#include "script/bind.h"
#include "script/bind_key.h"
#include "script/call.h"
#include "script/hook.h"
#include "script/host_private.h"

ALLOC_TYPE(reconciler_type, "reconciler");
ALLOC_TYPE(feeder_type, "reconciler source");
ALLOC_TYPE(run_type, "reconcile");

/* A source with the functions of the script that it asks. */
struct feeder {
	struct list node; /* in reconciler->feeders */
	struct reconciler *reconciler;
	struct reconciler_source options;
	struct source *source; /* NULL when its factory was shut down */
};

struct reconciler {
	struct list node; /* in script->reconcilers */
	struct script *script;
	struct controller *controller;
	struct informer *primary; /* counted */
	struct list feeders, runs;
	struct controller_options options;
	int function; /* in the registry */
	double timeout;
	bool leader, finalizes;
	bool opened, stopped;
};

/* One call of the reconcile function. */
struct run {
	struct list node; /* in reconciler->runs */
	struct reconciler *reconciler;
	struct work *work;
	struct task *task;         /* when it waits */
	struct loop_timer timeout; /* then too */
	double deadline;           /* clock_wall's scale */
	double after;              /* seconds; below 0: nothing was asked for */
	bool overdue;
};

/* --- a call --- */

static int push_call(lua_State *L, void *data)
{
	const struct run *run = data;
	size_t length;
	const char *key = work_key(run->work, &length);
	lua_rawgeti(L, LUA_REGISTRYINDEX, run->reconciler->function);
	lua_pushlstring(L, key, length);
	lua_pushinteger(L, work_attempt(run->work));
	lua_pushnumber(L, run->deadline);
	return 3;
}

static int read_results(lua_State *L, int count, void *data, struct err *err)
{
	struct run *run = data;
	int first = lua_gettop(L) - count + 1;
	if (count >= 2 && !lua_isnil(L, first + 1)) {
		lua_pushvalue(L, first + 1);
		call_error(L, L, LUA_ERRRUN, err);
		return -1;
	}
	if (count >= 1 && lua_isnumber(L, first))
		run->after = lua_tonumber(L, first);
	return 0;
}

static enum work_outcome outcome_of(const struct run *run, const struct err *err)
{
	if (!err)
		return run->after >= 0 ? WORK_AGAIN : WORK_DONE;
	if (!strcmp(err->reason, "Terminal"))
		return WORK_TERMINAL;
	return strcmp(err->reason, "Conflict") ? WORK_FAILED : WORK_CONFLICT;
}

static void log_failure(struct reconciler *reconciler, const struct err *err, const struct work_key *key,
			unsigned attempt, double next)
{
	struct script *script = reconciler->script;
	char place[256], number[16], again[48] = "it is not tried again";
	script->errors++;
	snprintf(number, sizeof(number), "%u", attempt);
	if (next > 0)
		snprintf(again, sizeof(again), "the next try is in %g s", next);
	log_error(LOG_FIELDS({"script", script->name}, {"controller", controller_name(reconciler->controller)},
			     {"namespace", *key->namespace ? key->namespace : NULL}, {"name", key->name},
			     {"attempt", number}, {"file", script_error_place(err, place, sizeof(place))},
			     {"error", err->message}),
		  "reconcile failed, %s", again);
}

static void log_conflict(const struct reconciler *reconciler, const struct err *err, const struct work_key *key)
{
	log_debug(LOG_FIELDS({"script", reconciler->script->name},
			     {"controller", controller_name(reconciler->controller)},
			     {"namespace", *key->namespace ? key->namespace : NULL}, {"name", key->name},
			     {"error", err->message}),
		  "conflict, reconciling again");
}

static void settle(struct run *run, const struct err *err)
{
	struct reconciler *reconciler = run->reconciler;
	struct work_key key;
	size_t length;
	if (err) /* the key may go with its work */
		work_key_split(work_key(run->work, &length), &key);
	unsigned attempt = work_attempt(run->work);
	enum work_outcome outcome = outcome_of(run, err);
	double next = controller_end(run->work, outcome, run->after);
	if (outcome == WORK_CONFLICT)
		log_conflict(reconciler, err, &key);
	else if (err)
		log_failure(reconciler, err, &key, attempt, next);
}

static void on_end(void *data, const struct err *err)
{
	struct run *run = data;
	struct reconciler *reconciler = run->reconciler;
	struct script *script = reconciler->script;
	struct err overdue;
	loop_timer_stop(script->loop, &run->timeout);
	if (run->overdue)
		err_set(&overdue, "Timeout", "the reconcile took longer than %g s (timeout) and was cancelled",
			reconciler->timeout);
	if (script->freeing)
		controller_end(run->work, WORK_BROKEN, 0);
	else
		settle(run, run->overdue ? &overdue : err);
	list_remove(&run->node);
	alloc_object_free(&run_type, run);
	script_call_ended(script);
}

static void on_timeout(void *data)
{
	struct run *run = data;
	run->overdue = true;
	task_cancel(run->task);
}

static void on_work(void *data, struct work *work)
{
	struct reconciler *reconciler = data;
	struct script *script = reconciler->script;
	struct run *run = alloc_object(&run_type, sizeof(*run));
	run->reconciler = reconciler;
	run->work = work;
	run->after = -1;
	list_add_tail(&reconciler->runs, &run->node);
	run->deadline = clock_wall() + reconciler->timeout;
	loop_timer_init(&run->timeout, on_timeout, run);
	script->tasks++;
	struct task_options options = {.push = push_call,
				       .on_results = read_results,
				       .on_end = on_end,
				       .data = run,
				       .what = "reconcile",
				       .place = controller_name(reconciler->controller),
				       .work = work,
				       .leader = reconciler->leader};
	double until = clock_now() + reconciler->timeout;
	struct task *task = task_start(script->state, &options);
	if (!task) /* the run is gone */
		return;
	run->task = task;
	loop_timer_start(script->loop, &run->timeout, until - clock_now());
}

/* --- what the sources ask --- */

struct question {
	struct feeder *feeder;
	const struct notification *notification;
	struct object *object;
	bool passes;
};

static int push_question(lua_State *L, void *data)
{
	const struct question *question = data;
	struct fields *seen = question->feeder->options.seen;
	bind_object_push(L, question->object, seen);
	bind_event_push(L, question->notification, seen);
	return 2;
}

static int read_passes(lua_State *L, int index, void *data, struct err *err)
{
	(void)err;
	((struct question *)data)->passes = lua_toboolean(L, index);
	return 0;
}

static int ask(struct question *question, struct hook *hook, int (*read)(lua_State *, int, void *, struct err *))
{
	struct hook_call call = {push_question, read, question};
	struct err err;
	if (!hook_call(hook, &call, &err))
		return 0;
	hook_failed(hook, &err, question->feeder->options.informer, question->object);
	return -1;
}

/* What the predicate would say, where that is plain without asking it. */
static bool is_refused(const struct feeder *feeder, const struct notification *notification)
{
	const struct object *object = notification->object, *old = notification->old;
	if (!feeder->options.only_labels || notification->type != NOTIFY_UPDATE)
		return false;
	uint32_t labels = object_labels(object);
	return labels != LABELS_UNKNOWN && labels == object_labels(old) && object_same_uid(object, old) &&
	       !object_is_ending(object);
}

/* One that fails lets the event pass: a reconcile too many is the smaller harm. */
static bool passes(void *data, const struct notification *notification)
{
	struct feeder *feeder = data;
	struct question question = {feeder, notification, notification->object, false};
	host_settled(feeder->reconciler->script->host);
	if (is_refused(feeder, notification))
		return false;
	return !feeder->options.passes || ask(&question, feeder->options.passes, read_passes) < 0 || question.passes;
}

static int add_reference(lua_State *L, int index, struct feeder *feeder, struct err *err)
{
	struct buf *key = &state_of(L)->scratch;
	buf_reset(key);
	if (bind_key_of(L, index, feeder->reconciler->primary, key, err) < 0)
		return -1;
	source_add(feeder->source, buf_text(key), key->length);
	return 0;
}

/* A table with fields, but no elements. */
static bool names_nothing(lua_State *L, int index)
{
	lua_pushnil(L);
	if (!lua_next(L, index))
		return false;
	lua_pop(L, 2);
	return lua_objlen(L, index) == 0;
}

/* nil, a reference, or a list of them. */
static int read_references(lua_State *L, int index, void *data, struct err *err)
{
	struct feeder *feeder = ((struct question *)data)->feeder;
	if (lua_isnil(L, index))
		return 0;
	if (!lua_istable(L, index))
		return err_set(err, "", "returned a %s, not references", luaL_typename(L, index));
	if (bind_key_is_reference(L, index))
		return add_reference(L, index, feeder, err);
	if (names_nothing(L, index))
		return err_set(err, "",
			       "returned a table that is no reference, since it has no name, and no list of such");
	for (int i = 1, count = (int)lua_objlen(L, index); i <= count; i++) {
		lua_rawgeti(L, index, i);
		if (!bind_key_is_reference(L, lua_gettop(L)))
			return err_set(err, "", "element %d of what it returned is no reference: it has no name", i);
		if (add_reference(L, lua_gettop(L), feeder, err) < 0)
			return -1;
		lua_pop(L, 1);
	}
	return 0;
}

static void map(void *data, const struct notification *notification, struct object *object)
{
	struct feeder *feeder = data;
	struct question question = {feeder, notification, object, false};
	ask(&question, feeder->options.map, read_references);
}

/* --- its life --- */

struct reconciler *reconciler_find_in(const struct script *script, const char *name)
{
	LIST_EACH (&script->reconcilers, node)
		if (!strcmp(controller_name(reconciler_of_node(node)->controller), name))
			return reconciler_of_node(node);
	return NULL;
}

/* That of the code before, where it has one of that name, or of code that still ends: its keys go on, and what runs in
 * it keeps its key. */
static struct controller *find_controller(struct script *script, const char *name)
{
	const struct reconciler *before = script->before ? reconciler_find_in(script->before, name) : NULL;
	if (!before)
		before = host_find_leaving(script->host, name);
	if (before)
		return controller_ref(before->controller);
	return controller_new(script->loop, name, host_metrics(script->host));
}

struct reconciler *reconciler_new(struct script *script, const struct reconciler_options *options)
{
	struct reconciler *reconciler = alloc_object(&reconciler_type, sizeof(*reconciler));
	reconciler->script = script;
	reconciler->primary = informer_ref(options->primary);
	reconciler->function = options->function;
	reconciler->timeout = options->timeout;
	reconciler->leader = options->leader;
	reconciler->finalizes = options->finalizes;
	list_init(&reconciler->feeders);
	list_init(&reconciler->runs);
	reconciler->options = (struct controller_options){.workers = options->workers,
							  .base = options->base,
							  .max = options->max,
							  .qps = options->qps,
							  .burst = options->burst,
							  .on_work = on_work,
							  .data = reconciler};
	reconciler->controller = find_controller(script, options->name);
	list_add_tail(&script->reconcilers, &reconciler->node);
	script->registered++;
	if (script->open)
		reconciler_take(reconciler);
	return reconciler;
}

struct reconciler_source *reconciler_add_source(struct reconciler *reconciler, const struct reconciler_source *options)
{
	struct feeder *feeder = alloc_object(&feeder_type, sizeof(*feeder));
	feeder->reconciler = reconciler;
	feeder->options = *options;
	struct source_options source = {.kind = options->kind,
					.informer = options->informer,
					.primary = options->kind == SOURCE_OWNS ? reconciler->primary : NULL,
					.any_owner = options->any_owner,
					.resync = options->resync,
					.passes = passes,
					.map = map,
					.data = feeder};
	feeder->source = source_new(reconciler->controller, &source);
	list_add_tail(&reconciler->feeders, &feeder->node);
	return &feeder->options;
}

static struct feeder *feeder_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct feeder, node);
}

static void free_feeder(struct feeder *feeder)
{
	list_remove(&feeder->node);
	source_free(feeder->source);
	hook_free(feeder->options.passes);
	hook_free(feeder->options.map);
	fields_unref(feeder->options.seen);
	alloc_object_free(&feeder_type, feeder);
}

static int release_function(lua_State *L, void *data)
{
	luaL_unref(L, LUA_REGISTRYINDEX, ((struct reconciler *)data)->function);
	return 0;
}

static void cancel_runs(struct reconciler *reconciler)
{
	while (!list_is_empty(&reconciler->runs))
		task_cancel(LIST_ENTRY(reconciler->runs.next, struct run, node)->task);
}

void reconciler_free(struct reconciler *reconciler)
{
	reconciler_stop(reconciler);
	cancel_runs(reconciler);
	list_remove(&reconciler->node);
	while (!list_is_empty(&reconciler->feeders))
		free_feeder(feeder_of_node(reconciler->feeders.next));
	controller_unref(reconciler->controller);
	call_plain(reconciler->script->state, release_function, reconciler, NULL);
	informer_unref(reconciler->primary);
	reconciler->script->registered--;
	alloc_object_free(&reconciler_type, reconciler);
}

static bool is_ready(const struct feeder *feeder)
{
	const struct reconciler_source *options = &feeder->options;
	if (!feeder->source)
		return true;
	bool awaited = factory_needs(options->factory->factory, options->informer);
	return script_factory_has_synced(options->factory) && (!awaited || informer_has_synced(options->informer));
}

static bool may_open(const struct reconciler *reconciler)
{
	LIST_EACH (&reconciler->feeders, node)
		if (!is_ready(feeder_of_node(node)))
			return false;
	return true;
}

void reconciler_take(struct reconciler *reconciler)
{
	if (reconciler->stopped)
		return;
	controller_serve(reconciler->controller, &reconciler->options);
	if (reconciler->script->parked)
		controller_pause(reconciler->controller);
}

/* Not when another generation has the controller already. */
void reconciler_pause(struct reconciler *reconciler)
{
	if (controller_serves(reconciler->controller, reconciler))
		controller_pause(reconciler->controller);
}

void reconciler_open_ready(struct reconciler *reconciler)
{
	if (reconciler->stopped || !may_open(reconciler))
		return;
	if (!reconciler->opened)
		LIST_EACH (&reconciler->feeders, node)
			if (feeder_of_node(node)->source)
				source_open(feeder_of_node(node)->source);
	reconciler->opened = true;
	if (!reconciler->leader || host_is_leader(reconciler->script->host))
		controller_start(reconciler->controller);
}

static void close_sources(struct reconciler *reconciler)
{
	LIST_EACH (&reconciler->feeders, node)
		if (feeder_of_node(node)->source)
			source_close(feeder_of_node(node)->source);
}

bool reconciler_is_drained(const struct reconciler *reconciler)
{
	LIST_EACH (&reconciler->feeders, node) {
		const struct source *source = feeder_of_node(node)->source;
		if (source && source_depth(source))
			return false;
	}
	return true;
}

void reconciler_stop(struct reconciler *reconciler)
{
	reconciler->stopped = true;
	close_sources(reconciler);
	if (controller_serves(reconciler->controller, reconciler))
		controller_stop(reconciler->controller);
}

void reconciler_drop_factory(struct reconciler *reconciler, const struct script_factory *factory)
{
	LIST_EACH (&reconciler->feeders, node) {
		struct feeder *feeder = feeder_of_node(node);
		if (feeder->options.factory != factory)
			continue;
		source_free(feeder->source);
		feeder->source = NULL;
	}
}

void reconciler_each_source(const struct reconciler *reconciler,
			    void (*on_source)(void *data, enum source_kind kind, const struct informer *informer),
			    void *data)
{
	LIST_EACH (&reconciler->feeders, node) {
		const struct reconciler_source *options = &feeder_of_node(node)->options;
		on_source(data, options->kind, options->informer);
	}
}

unsigned reconciler_workers(const struct reconciler *reconciler)
{
	return reconciler->options.workers;
}

bool reconciler_is_leaders(const struct reconciler *reconciler)
{
	return reconciler->leader;
}

bool reconciler_finalizes(const struct reconciler *reconciler)
{
	return reconciler->finalizes;
}

struct controller *reconciler_controller(const struct reconciler *reconciler)
{
	return reconciler->controller;
}

struct informer *reconciler_primary(const struct reconciler *reconciler)
{
	return reconciler->primary;
}

struct reconciler *reconciler_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct reconciler, node);
}

/* A script that is being loaded is not among the host's yet. */
struct reconciler *reconciler_find(const struct script *script, const char *name)
{
	struct reconciler *found = reconciler_find_in(script, name);
	LIST_EACH (host_scripts(script->host), node) {
		const struct script *other = LIST_ENTRY(node, struct script, node);
		if (!found && other != script->before && !other->gone)
			found = reconciler_find_in(other, name);
	}
	return found ? found : host_find_coming(script->host, name);
}
