#include "work/workmeter.h"

#include "base/alloc.h"

ALLOC_TYPE(workmeter_type, "workmeter");

enum { DEPTH, ADDS, QUEUE_DURATION, WORK_DURATION, UNFINISHED, LONGEST, RETRIES, FAMILIES };

#define LABELS "name", "controller"
#define BOUNDS .bounds = bounds, .bound_count = sizeof(bounds) / sizeof(*bounds)

static const double bounds[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000};
static const struct metric_definition table[FAMILIES] = {
    [DEPTH] = {.type = METRIC_GAUGE,
	       .name = "workqueue_depth",
	       .help = "Keys that wait to be taken, by priority.",
	       .labels = {LABELS, "priority"}},
    [ADDS] = {.type = METRIC_COUNTER,
	      .name = "workqueue_adds_total",
	      .help = "Keys added, those that waited already left out.",
	      .labels = {LABELS}},
    [QUEUE_DURATION] = {.type = METRIC_HISTOGRAM,
			.name = "workqueue_queue_duration_seconds",
			.help = "Seconds that keys waited to be taken.",
			.labels = {LABELS},
			BOUNDS},
    [WORK_DURATION] = {.type = METRIC_HISTOGRAM,
		       .name = "workqueue_work_duration_seconds",
		       .help = "Seconds that keys were worked on.",
		       .labels = {LABELS},
		       BOUNDS},
    [UNFINISHED] = {.type = METRIC_GAUGE,
		    .name = "workqueue_unfinished_work_seconds",
		    .help = "Seconds that the keys with workers have been there, all together.",
		    .labels = {LABELS}},
    [LONGEST] = {.type = METRIC_GAUGE,
		 .name = "workqueue_longest_running_processor_seconds",
		 .help = "Seconds that the key which has been with a worker longest has been there.",
		 .labels = {LABELS}},
    [RETRIES] = {.type = METRIC_COUNTER,
		 .name = "workqueue_retries_total",
		 .help = "Keys added for later: failures, and what asked to be called again.",
		 .labels = {LABELS}},
};

struct workmeter {
	char *name;
	workmeter_fn ask;
	void *data;
	struct metric_collector collector;
	struct metric_family *families[FAMILIES];
	struct metric_series *adds, *retries, *queue_duration, *work_duration;
};

static void collect(void *data)
{
	const struct workmeter *meter = data;
	struct workmeter_state state;
	meter->ask(meter->data, &state);
	const char *const high[] = {meter->name, meter->name, "high"};
	const char *const low[] = {meter->name, meter->name, "low"};
	metric_collect(meter->families[DEPTH], high, (double)state.high);
	metric_collect(meter->families[DEPTH], low, (double)state.low);
	metric_collect(meter->families[UNFINISHED], high, state.unfinished);
	metric_collect(meter->families[LONGEST], high, state.longest);
}

static struct metric_series *hold(const struct workmeter *meter, int family)
{
	return metric_hold(meter->families[family], (const char *const[]){meter->name, meter->name});
}

struct workmeter *workmeter_new(struct metric_registry *registry, const char *name, workmeter_fn ask, void *data)
{
	struct workmeter *meter = alloc_object(&workmeter_type, sizeof(*meter));
	meter->name = alloc_string(name);
	meter->ask = ask;
	meter->data = data;
	metric_define(registry, table, FAMILIES, meter->families);
	meter->adds = hold(meter, ADDS);
	meter->retries = hold(meter, RETRIES);
	meter->queue_duration = hold(meter, QUEUE_DURATION);
	meter->work_duration = hold(meter, WORK_DURATION);
	meter->collector.collect = collect;
	meter->collector.data = meter;
	metric_collector_add(registry, &meter->collector);
	return meter;
}

void workmeter_free(struct workmeter *meter)
{
	metric_collector_remove(&meter->collector);
	metric_release(meter->adds);
	metric_release(meter->retries);
	metric_release(meter->queue_duration);
	metric_release(meter->work_duration);
	alloc_free(meter->name);
	alloc_object_free(&workmeter_type, meter);
}

void workmeter_added(struct workmeter *meter)
{
	metric_add(meter->adds, 1);
}

void workmeter_delayed(struct workmeter *meter)
{
	metric_add(meter->retries, 1);
}

void workmeter_taken(struct workmeter *meter, double waited)
{
	metric_observe(meter->queue_duration, waited);
}

void workmeter_done(struct workmeter *meter, double worked_on)
{
	metric_observe(meter->work_duration, worked_on);
}
