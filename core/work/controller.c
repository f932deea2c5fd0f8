#include "work/controller.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "work/hotloop.h"

ALLOC_TYPE(controller_type, "controller");
ALLOC_TYPE(work_type, "work");

enum { RECONCILES, ERRORS, TERMINAL_ERRORS, TIME, MOST, ACTIVE, FAMILIES };

/* Names, labels and buckets are those of controller-runtime v0.23, pkg/internal/controller/metrics. */
static const double bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
				0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
				6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
static const struct metric_definition table[FAMILIES] = {
    [RECONCILES] = {.type = METRIC_COUNTER,
		    .name = "controller_runtime_reconcile_total",
		    .help = "Reconciles that have ended, by controller and result.",
		    .labels = {"controller", "result"}},
    [ERRORS] = {.type = METRIC_COUNTER,
		.name = "controller_runtime_reconcile_errors_total",
		.help = "Reconciles that ended with an error.",
		.labels = {"controller"}},
    [TERMINAL_ERRORS] = {.type = METRIC_COUNTER,
			 .name = "controller_runtime_terminal_reconcile_errors_total",
			 .help = "Reconciles that ended with an error that is not tried again.",
			 .labels = {"controller"}},
    [TIME] = {.type = METRIC_HISTOGRAM,
	      .name = "controller_runtime_reconcile_time_seconds",
	      .help = "Seconds from the start of a reconcile to its end, waits included.",
	      .labels = {"controller"},
	      .bounds = bounds,
	      .bound_count = sizeof(bounds) / sizeof(*bounds)},
    [MOST] = {.type = METRIC_GAUGE,
	      .name = "controller_runtime_max_concurrent_reconciles",
	      .help = "Workers of the controller.",
	      .labels = {"controller"}},
    [ACTIVE] = {.type = METRIC_GAUGE,
		.name = "controller_runtime_active_workers",
		.help = "Workers of the controller that are at work.",
		.labels = {"controller"}},
};

enum result { RESULT_SUCCESS, RESULT_AFTER, RESULT_REQUEUE, RESULT_ERROR, RESULTS };
static const char *const result_names[RESULTS] = {"success", "requeue_after", "requeue", "error"};

struct controller {
	unsigned count;
	struct loop *loop;
	char *name;
	struct controller_options options; /* of whom it serves now; zero before the first */
	struct workqueue *queue;
	unsigned active; /* works under way */
	bool started, stopped;
	struct loop_job turn;
	struct hotloop hotloop;
	struct metric_series *series[FAMILIES]; /* RECONCILES: NULL */
	struct metric_series *results[RESULTS];
};

/* --- its figures --- */

static void hold_series(struct controller *controller, struct metric_registry *metrics)
{
	struct metric_family *families[FAMILIES];
	metric_define(metrics, table, FAMILIES, families);
	for (int i = 0; i < FAMILIES; i++)
		if (i != RECONCILES)
			controller->series[i] = metric_hold(families[i], (const char *const[]){controller->name});
	for (int i = 0; i < RESULTS; i++)
		controller->results[i] =
		    metric_hold(families[RECONCILES], (const char *const[]){controller->name, result_names[i]});
}

static void release_series(struct controller *controller)
{
	for (int i = 0; i < FAMILIES; i++)
		if (controller->series[i])
			metric_release(controller->series[i]);
	for (int i = 0; i < RESULTS; i++)
		metric_release(controller->results[i]);
}

static void count_end(struct controller *controller, enum work_outcome outcome, double seconds)
{
	static const enum result results[] = {
	    [WORK_DONE] = RESULT_SUCCESS,     [WORK_AGAIN] = RESULT_AFTER,    [WORK_FAILED] = RESULT_ERROR,
	    [WORK_CONFLICT] = RESULT_REQUEUE, [WORK_TERMINAL] = RESULT_ERROR, [WORK_BROKEN] = RESULT_REQUEUE};
	metric_add(controller->results[results[outcome]], 1);
	metric_add(controller->series[ERRORS], results[outcome] == RESULT_ERROR);
	metric_add(controller->series[TERMINAL_ERRORS], outcome == WORK_TERMINAL);
	metric_observe(controller->series[TIME], seconds);
	metric_set(controller->series[ACTIVE], controller->active);
}

/* --- its work --- */

static void begin(struct controller *controller, struct work_item *item)
{
	struct work *work = alloc_object(&work_type, sizeof(*work));
	work->controller = controller;
	work->item = item;
	metric_set(controller->series[ACTIVE], ++controller->active);
	controller->options.on_work(controller->options.data, work);
}

static bool may_work(const struct controller *controller)
{
	return controller->started && !controller->stopped && controller->active < controller->options.workers;
}

static void on_turn(void *data)
{
	struct controller *controller = data;
	double until = loop_until(controller->loop);
	for (struct work_item *item; may_work(controller) && (item = workqueue_get(controller->queue));) {
		begin(controller, item);
		if (clock_now() < until)
			continue;
		loop_post(controller->loop, &controller->turn);
		return;
	}
}

static void on_ready(void *data)
{
	struct controller *controller = data;
	loop_post(controller->loop, &controller->turn);
}

static double settle(struct controller *controller, struct work_item *item, enum work_outcome outcome, double after)
{
	size_t length;
	const char *key = work_item_key(item, &length);
	if (outcome == WORK_FAILED || outcome == WORK_CONFLICT)
		return workqueue_retry(controller->queue, item);
	if (outcome == WORK_BROKEN) {
		workqueue_add(controller->queue, key, length, WORK_HIGH);
		return 0;
	}
	workqueue_forget(controller->queue, item);
	if (outcome != WORK_AGAIN)
		return 0;
	workqueue_add_after(controller->queue, key, length, work_item_priority(item), after);
	return after;
}

double controller_end(struct work *work, enum work_outcome outcome, double after)
{
	struct controller *controller = work->controller;
	double seconds = clock_now() - work_item_taken_at(work->item);
	controller->active--;
	double next = settle(controller, work->item, outcome, after);
	workqueue_done(controller->queue, work->item);
	count_end(controller, outcome, seconds);
	alloc_object_free(&work_type, work);
	if (may_work(controller))
		loop_post(controller->loop, &controller->turn);
	return next;
}

/* --- its keys --- */

void work_key_split(const char *key, struct work_key *out)
{
	const char *slash = strchr(key, '/');
	snprintf(out->namespace, sizeof(out->namespace), "%.*s", slash ? (int)(slash - key) : 0, key);
	snprintf(out->name, sizeof(out->name), "%s", slash ? slash + 1 : key);
}

static void report_hot(const struct controller *controller, const char *text)
{
	struct work_key key;
	work_key_split(text, &key);
	log_warn(
	    LOG_FIELDS({"controller", controller->name}, {"namespace", *key.namespace ? key.namespace : NULL},
		       {"name", key.name}),
	    "hot loop: its own writes brought the key back more than %d times in %g s, so each of them waits now; a "
	    "reconcile that finds nothing to do should write nothing",
	    HOTLOOP_MOST, HOTLOOP_WINDOW);
}

void controller_add(struct controller *controller, const char *key, size_t length, enum work_priority priority,
		    const char *version)
{
	struct hotloop_verdict verdict = {0};
	if (version)
		verdict = hotloop_returned(&controller->hotloop, key, length, version);
	if (verdict.news)
		report_hot(controller, key);
	if (verdict.delay > 0)
		workqueue_add_after(controller->queue, key, length, priority, verdict.delay);
	else
		workqueue_add(controller->queue, key, length, priority);
}

void controller_add_after(struct controller *controller, const char *key, size_t length, double seconds)
{
	workqueue_add_after(controller->queue, key, length, WORK_HIGH, seconds);
}

void work_wrote(struct work *work, const char *version)
{
	size_t length;
	const char *key = work_key(work, &length);
	hotloop_wrote(&work->controller->hotloop, key, length, version);
}

const char *work_key(const struct work *work, size_t *length)
{
	return work_item_key(work->item, length);
}

unsigned work_attempt(const struct work *work)
{
	return work_item_failures(work->item) + 1;
}

/* --- its life --- */

struct controller *controller_new(struct loop *loop, const char *name, struct metric_registry *metrics)
{
	struct controller *controller = alloc_object(&controller_type, sizeof(*controller));
	controller->count = 1;
	controller->loop = loop;
	controller->name = alloc_string(name);
	loop_job_init(&controller->turn, on_turn, controller);
	hotloop_init(&controller->hotloop, loop);
	struct workqueue_options queue = {.name = name, .metrics = metrics, .on_ready = on_ready, .data = controller};
	controller->queue = workqueue_new(loop, &queue);
	hold_series(controller, metrics);
	return controller;
}

struct controller *controller_ref(struct controller *controller)
{
	controller->count++;
	return controller;
}

void controller_unref(struct controller *controller)
{
	if (--controller->count)
		return;
	loop_job_cancel(&controller->turn);
	workqueue_free(controller->queue);
	hotloop_fini(&controller->hotloop);
	release_series(controller);
	alloc_free(controller->name);
	alloc_object_free(&controller_type, controller);
}

void controller_serve(struct controller *controller, const struct controller_options *options)
{
	controller->options = *options;
	controller->started = false;
	if (controller->stopped)
		workqueue_reopen(controller->queue);
	controller->stopped = false;
	workqueue_limit(controller->queue, options->base, options->max, options->qps, options->burst);
	metric_set(controller->series[MOST], options->workers);
}

void controller_pause(struct controller *controller)
{
	controller->options.workers = 0;
	metric_set(controller->series[MOST], 0);
}

bool controller_serves(const struct controller *controller, const void *data)
{
	return controller->options.data == data;
}

void controller_start(struct controller *controller)
{
	controller->started = true;
	loop_post(controller->loop, &controller->turn);
}

void controller_stop(struct controller *controller)
{
	controller->stopped = true;
	workqueue_shutdown(controller->queue);
}

bool controller_is_started(const struct controller *controller)
{
	return controller->started;
}

const char *controller_name(const struct controller *controller)
{
	return controller->name;
}

const struct workqueue *controller_queue(const struct controller *controller)
{
	return controller->queue;
}
