#include "script/consumer.h"

#include <lauxlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/filter.h"
#include "script/bind.h"
#include "script/call.h"
#include "script/hook.h"
#include "script/host_private.h"
#include "script/tally.h"

ALLOC_TYPE(consumer_type, "consumer");

struct consumer {
	struct list node; /* in script->consumers */
	unsigned id;
	struct consumer_options options;
	struct script *script;
	struct listener *listener;
	struct filter *filter; /* over options.filter; NULL for none */
	char *place;
	struct tally_handler tally;
	struct loop_job job;
	struct loop_job release; /* posted when it is removed and no call runs; the script's end may come first */
	struct task *task;       /* the running call when it waits */
	struct notification current;
	double called_at; /* clock_now's scale */
	bool calling;     /* from the pop until the call has ended; current is valid exactly then */
	bool opened, stopped, removed, freeing;
};

static const char *const function_names[] = {"add handler", "update handler", "delete handler"};

static int push_call(lua_State *L, void *data)
{
	struct consumer *consumer = data;
	const struct consumer_options *options = &consumer->options;
	lua_rawgeti(L, LUA_REGISTRYINDEX, options->functions[consumer->current.type]);
	bind_object_push(L, consumer->current.object, options->fields);
	bind_event_push(L, &consumer->current, options->fields);
	return 2;
}

/* Whoever frees it is on the stack: a call that ends now was cancelled by that. */
static bool is_being_freed(const struct consumer *consumer)
{
	return consumer->freeing || consumer->script->freeing;
}

/* The popped notification is dealt with, well or not: the registration's sync counts it either way. */
static void finish(struct consumer *consumer)
{
	consumer->calling = false;
	consumer->task = NULL;
	consumer->script->events++;
	notification_fini(&consumer->current);
	listener_done(consumer->listener);
	host_settled(consumer->script->host);
}

static void run_release(void *data)
{
	consumer_free(data);
}

static void free_later(struct consumer *consumer)
{
	loop_post(consumer->script->loop, &consumer->release);
}

static void note_end(struct consumer *consumer, const struct err *err)
{
	enum notification_type type = consumer->current.type;
	tally_handler_called(&consumer->tally, type, clock_now() - consumer->called_at, err != NULL);
	if (err)
		script_log_error(consumer->script, err, function_names[type], consumer->options.informer,
				 consumer->current.object);
}

static void on_call_end(void *data, const struct err *err)
{
	struct consumer *consumer = data;
	bool waited = consumer->task != NULL;
	if (!is_being_freed(consumer))
		note_end(consumer, err);
	finish(consumer);
	script_call_ended(consumer->script);
	if (is_being_freed(consumer))
		return;
	if (consumer->removed)
		free_later(consumer);
	else if (waited)
		loop_post(consumer->script->loop, &consumer->job);
}

struct judgement {
	const struct consumer *consumer;
	const struct object *object;
	bool passes;
};

static int push_judged(lua_State *L, void *data)
{
	const struct judgement *judgement = data;
	bind_object_push(L, judgement->object, judgement->consumer->options.fields);
	return 1;
}

static int read_passes(lua_State *L, int index, void *data, struct err *err)
{
	(void)err;
	((struct judgement *)data)->passes = lua_toboolean(L, index);
	return 0;
}

static enum filter_verdict judge(void *data, const struct object *object)
{
	struct consumer *consumer = data;
	struct judgement judgement = {.consumer = consumer, .object = object};
	struct hook_call call = {push_judged, read_passes, &judgement};
	struct err err;
	if (!hook_call(consumer->options.filter, &call, &err))
		return judgement.passes ? FILTER_PASSES : FILTER_REFUSES;
	hook_failed(consumer->options.filter, &err, consumer->options.informer, object);
	return FILTER_FAILS;
}

/* What the filter makes of the current notification. In it the script may have removed the registration. */
static bool is_told(struct consumer *consumer)
{
	if (consumer->filter && !filter_admit(consumer->filter, &consumer->current))
		return false;
	return !consumer->stopped && consumer->options.functions[consumer->current.type] != LUA_NOREF;
}

static void call(struct consumer *consumer)
{
	consumer->calling = true;
	if (!is_told(consumer)) {
		finish(consumer);
		if (consumer->removed)
			free_later(consumer);
		return;
	}
	consumer->script->tasks++;
	consumer->called_at = clock_now();
	struct task_options options = {.push = push_call,
				       .on_end = on_call_end,
				       .data = consumer,
				       .what = function_names[consumer->current.type],
				       .place = consumer->place};
	consumer->task = task_start(consumer->script->state, &options);
}

static void on_turn(void *data)
{
	struct consumer *consumer = data;
	double until = loop_until(consumer->script->loop);
	while (!consumer->calling && !consumer->stopped && listener_pop(consumer->listener, &consumer->current)) {
		call(consumer);
		if (!consumer->calling && clock_now() >= until) {
			loop_post(consumer->script->loop, &consumer->job);
			return;
		}
	}
}

static void on_ready(void *data)
{
	struct consumer *consumer = data;
	if (!consumer->calling && !consumer->stopped)
		loop_post(consumer->script->loop, &consumer->job);
}

static void begin_tally(struct consumer *consumer)
{
	const struct consumer_options *options = &consumer->options;
	const char *const texts[] = {consumer->script->name, informer_label(options->informer), consumer->place};
	bool has_function[3];
	for (int type = 0; type < 3; type++)
		has_function[type] = options->functions[type] != LUA_NOREF;
	tally_handler_init(&consumer->tally, host_tally(consumer->script->host), texts, has_function);
}

struct consumer *consumer_new(const struct consumer_options *options, const char *place)
{
	static unsigned last_id;
	struct consumer *consumer = alloc_object(&consumer_type, sizeof(*consumer));
	consumer->id = ++last_id;
	consumer->options = *options;
	consumer->script = options->factory->script;
	consumer->place = alloc_string(place);
	consumer->script->registered++;
	begin_tally(consumer);
	loop_job_init(&consumer->job, on_turn, consumer);
	loop_job_init(&consumer->release, run_release, consumer);
	struct listener_options listen = {
	    .every_event = options->every_event, .resync = options->resync, .on_ready = on_ready, .data = consumer};
	consumer->listener = listener_new(options->informer, &listen);
	consumer->filter = options->filter ? filter_new(judge, consumer) : NULL;
	list_add_tail(&consumer->script->consumers, &consumer->node);
	return consumer;
}

static int release_functions(lua_State *L, void *data)
{
	struct consumer *consumer = data;
	for (int i = 0; i < 3; i++)
		luaL_unref(L, LUA_REGISTRYINDEX, consumer->options.functions[i]);
	return 0;
}

void consumer_free(struct consumer *consumer)
{
	consumer->freeing = consumer->stopped = true;
	if (consumer->task)
		task_cancel(consumer->task);
	loop_job_cancel(&consumer->job);
	loop_job_cancel(&consumer->release);
	list_remove(&consumer->node);
	listener_free(consumer->listener);
	tally_handler_fini(&consumer->tally);
	alloc_free(consumer->place);
	call_plain(consumer->script->state, release_functions, consumer, NULL);
	filter_free(consumer->filter);
	hook_free(consumer->options.filter);
	fields_unref(consumer->options.fields);
	consumer->script->registered--;
	alloc_object_free(&consumer_type, consumer);
}

void consumer_remove(struct consumer *consumer)
{
	if (consumer->removed)
		return;
	consumer->removed = consumer->stopped = true;
	if (!consumer->calling)
		free_later(consumer);
}

unsigned consumer_id(const struct consumer *consumer)
{
	return consumer->id;
}

struct consumer *consumer_find(const struct script *script, unsigned id)
{
	LIST_EACH (&script->consumers, node)
		if (consumer_of_node(node)->id == id)
			return consumer_of_node(node);
	return NULL;
}

struct script_factory *consumer_factory(const struct consumer *consumer)
{
	return consumer->options.factory;
}

struct informer *consumer_informer(const struct consumer *consumer)
{
	return consumer->options.informer;
}

void consumer_open(struct consumer *consumer)
{
	if (consumer->opened || consumer->stopped)
		return;
	consumer->opened = true;
	listener_open(consumer->listener);
}

void consumer_close(struct consumer *consumer)
{
	listener_close(consumer->listener);
}

bool consumer_is_drained(const struct consumer *consumer)
{
	return consumer->stopped || (!consumer->calling && !listener_depth(consumer->listener));
}

void consumer_stop(struct consumer *consumer)
{
	consumer->stopped = true;
}

const char *consumer_place(const struct consumer *consumer)
{
	return consumer->place;
}

bool consumer_has_synced(const struct consumer *consumer)
{
	return listener_has_synced(consumer->listener);
}

size_t consumer_depth(const struct consumer *consumer)
{
	return listener_depth(consumer->listener);
}

double consumer_age(const struct consumer *consumer)
{
	return listener_age(consumer->listener);
}

struct consumer *consumer_of_node(struct list *node)
{
	return LIST_ENTRY(node, struct consumer, node);
}
