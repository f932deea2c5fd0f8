#include "script/tally.h"

#include "base/alloc.h"
#include "script/bind.h"
#include "script/consumer.h"
#include "script/hook.h"
#include "script/host_private.h"

ALLOC_TYPE(tally_type, "tally");

enum {
	EVENTS,
	ERRORS,
	DURATION,
	DEPTH,
	AGE,
	SCRIPT_GENERATION,
	SCRIPT_MEMORY,
	SCRIPT_ERRORS,
	SCRIPT_HOOK_ERRORS,
	SCRIPT_STOPS,
	SCRIPT_PARKED,
	FAMILIES
};

#define HANDLER "script", "informer", "handler"

/* A handler takes 20 us when it only looks, and as long as the API server does when it writes. */
static const double bounds[] = {0.0001, 0.001, 0.01, 0.1, 1, 10, 100};
static const struct metric_definition table[FAMILIES] = {
    [EVENTS] = {.type = METRIC_COUNTER,
		.name = "perilune_handler_events_total",
		.help = "Calls of the handler that have ended, by the type of the event.",
		.labels = {HANDLER, "type"}},
    [ERRORS] = {.type = METRIC_COUNTER,
		.name = "perilune_handler_errors_total",
		.help = "Calls of the handler that ended with an error.",
		.labels = {HANDLER}},
    [DURATION] = {.type = METRIC_HISTOGRAM,
		  .name = "perilune_handler_duration_seconds",
		  .help = "Seconds from a call of the handler to its end, waits included.",
		  .labels = {HANDLER},
		  .bounds = bounds,
		  .bound_count = sizeof(bounds) / sizeof(*bounds)},
    [DEPTH] = {.type = METRIC_GAUGE,
	       .name = "perilune_handler_queue_depth",
	       .help = "Events that wait in the handler's queue.",
	       .labels = {HANDLER}},
    [AGE] = {.type = METRIC_GAUGE,
	     .name = "perilune_handler_queue_age_seconds",
	     .help = "Seconds that the oldest event in the handler's queue has waited.",
	     .labels = {HANDLER}},
    [SCRIPT_GENERATION] = {.type = METRIC_GAUGE,
			   .name = "perilune_script_generation",
			   .help =
			       "1 for a script as it was loaded first, and one more for each load that took its place.",
			   .labels = {"script"}},
    [SCRIPT_MEMORY] = {.type = METRIC_GAUGE,
		       .name = "perilune_script_memory_bytes",
		       .help = "Memory of the script's Lua state.",
		       .labels = {"script"}},
    [SCRIPT_ERRORS] = {.type = METRIC_COUNTER,
		       .name = "perilune_script_errors_total",
		       .help = "Calls of the script, of handlers and others, that ended with an error.",
		       .labels = {"script"}},
    [SCRIPT_HOOK_ERRORS] =
	{.type = METRIC_COUNTER,
	 .name = "perilune_script_function_errors_total",
	 .help = "Calls of the script's transforms, filters and index functions that ended with an error.",
	 .labels = {"script", "function"}},
    [SCRIPT_STOPS] = {.type = METRIC_COUNTER,
		      .name = "perilune_script_stops_total",
		      .help = "Calls of the script that were stopped at a limit.",
		      .labels = {"script", "limit"}},
    [SCRIPT_PARKED] = {.type = METRIC_GAUGE,
		       .name = "perilune_script_parked",
		       .help =
			   "1 when nothing of the script is called any more, since it did not keep within its limits.",
		       .labels = {"script"}},
};

struct tally {
	struct host *host;
	struct metric_collector collector;
	struct metric_family *families[FAMILIES];
};

/* --- what is counted as it happens --- */

void tally_handler_init(struct tally_handler *handler, struct tally *tally, const char *const texts[3],
			const bool has_function[3])
{
	handler->errors = metric_hold(tally->families[ERRORS], texts);
	handler->duration = metric_hold(tally->families[DURATION], texts);
	for (int type = 0; type < 3; type++) {
		const char *const values[] = {texts[0], texts[1], texts[2], bind_event_names[type]};
		handler->events[type] = has_function[type] ? metric_hold(tally->families[EVENTS], values) : NULL;
	}
}

void tally_handler_fini(struct tally_handler *handler)
{
	metric_release(handler->errors);
	metric_release(handler->duration);
	for (int type = 0; type < 3; type++)
		if (handler->events[type])
			metric_release(handler->events[type]);
}

void tally_handler_called(struct tally_handler *handler, int type, double seconds, bool failed)
{
	metric_add(handler->events[type], 1);
	metric_add(handler->errors, failed);
	metric_observe(handler->duration, seconds);
}

/* --- what is worked out for the page --- */

static void collect_handler(const struct tally *tally, const struct script *script, const struct consumer *consumer)
{
	const char *const labels[] = {script->name, informer_label(consumer_informer(consumer)),
				      consumer_place(consumer)};
	metric_collect(tally->families[DEPTH], labels, (double)consumer_depth(consumer));
	metric_collect(tally->families[AGE], labels, consumer_age(consumer));
}

static void collect_script(const struct tally *tally, const struct script *script)
{
	const struct state *state = script->state;
	metric_collect(tally->families[SCRIPT_GENERATION], (const char *const[]){script->name}, script->generation);
	metric_collect(tally->families[SCRIPT_MEMORY], (const char *const[]){script->name}, (double)state->memory);
	metric_collect(tally->families[SCRIPT_ERRORS], (const char *const[]){script->name}, (double)script->errors);
	for (int kind = 0; kind < HOOK_KINDS; kind++)
		metric_collect(tally->families[SCRIPT_HOOK_ERRORS],
			       (const char *const[]){script->name, hook_names[kind]},
			       (double)script->hook_errors[kind]);
	metric_collect(tally->families[SCRIPT_STOPS], (const char *const[]){script->name, "time"},
		       (double)state->stops[KILL_TIME]);
	metric_collect(tally->families[SCRIPT_STOPS], (const char *const[]){script->name, "memory"},
		       (double)state->stops[KILL_MEMORY]);
	metric_collect(tally->families[SCRIPT_PARKED], (const char *const[]){script->name}, state->parked != NULL);
	LIST_EACH (&script->consumers, node)
		collect_handler(tally, script, consumer_of_node(node));
}

static void collect(void *data)
{
	const struct tally *tally = data;
	LIST_EACH (host_scripts(tally->host), node)
		collect_script(tally, LIST_ENTRY(node, struct script, node));
}

struct tally *tally_new(struct metric_registry *registry, struct host *host)
{
	struct tally *tally = alloc_object(&tally_type, sizeof(*tally));
	tally->host = host;
	tally->collector.collect = collect;
	tally->collector.data = tally;
	metric_define(registry, table, FAMILIES, tally->families);
	metric_collector_add(registry, &tally->collector);
	return tally;
}

void tally_free(struct tally *tally)
{
	metric_collector_remove(&tally->collector);
	alloc_object_free(&tally_type, tally);
}
