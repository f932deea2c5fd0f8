#include "cache/barrier.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

ALLOC_TYPE(barrier_type, "barrier");

#define FIRST_ANNOUNCEMENT 2.0
#define LAST_GAP 60.0
#define OPTIONAL_PATIENCE 10.0

struct guest {
	struct barrier *barrier;
	struct informer *informer; /* a reference */
	struct informer_observer observer;
	bool optional, failed;
	bool synced;
	size_t objects; /* the most that were there: beyond it is progress */
	unsigned long lists;
};

struct barrier {
	struct loop *loop;
	struct barrier_options options;
	struct guest **guests;
	size_t count;
	bool started, open, done;
	double started_at, progress_at;
	double gap; /* to the next announcement */
	struct loop_job job;
	struct loop_timer limit, announcement;
	struct loop_timer unwait; /* optional ones are not waited for when it has run out */
};

static void run_check(void *data);
static void on_limit(void *data);
static void on_announcement(void *data);
static void on_unwait(void *data);

struct barrier *barrier_new(struct loop *loop, const struct barrier_options *options)
{
	struct barrier *barrier = alloc_object(&barrier_type, sizeof(*barrier));
	barrier->loop = loop;
	barrier->options = *options;
	barrier->gap = FIRST_ANNOUNCEMENT;
	loop_job_init(&barrier->job, run_check, barrier);
	loop_timer_init(&barrier->limit, on_limit, barrier);
	loop_timer_init(&barrier->announcement, on_announcement, barrier);
	loop_timer_init(&barrier->unwait, on_unwait, barrier);
	return barrier;
}

static void post_check(void *data)
{
	struct barrier *barrier = ((struct guest *)data)->barrier;
	if (barrier->started && !barrier->done)
		loop_post(barrier->loop, &barrier->job);
}

static struct guest *find_guest(const struct barrier *barrier, const struct informer *informer)
{
	for (size_t i = 0; i < barrier->count; i++)
		if (barrier->guests[i]->informer == informer)
			return barrier->guests[i];
	return NULL;
}

void barrier_add(struct barrier *barrier, struct informer *informer, bool optional)
{
	struct guest *guest = find_guest(barrier, informer);
	if (guest) {
		guest->optional &= optional;
		return;
	}
	guest = alloc_zero(sizeof(*guest));
	guest->optional = optional;
	guest->barrier = barrier;
	guest->informer = informer_ref(informer);
	guest->observer.on_change = post_check;
	guest->observer.data = guest;
	informer_observe(informer, &guest->observer);
	barrier->guests = alloc_resize(barrier->guests, (barrier->count + 1) * sizeof(struct guest *));
	barrier->guests[barrier->count++] = guest;
}

static void stop_timers(struct barrier *barrier)
{
	loop_job_cancel(&barrier->job);
	loop_timer_stop(barrier->loop, &barrier->limit);
	loop_timer_stop(barrier->loop, &barrier->announcement);
	loop_timer_stop(barrier->loop, &barrier->unwait);
}

void barrier_free(struct barrier *barrier)
{
	if (!barrier)
		return;
	stop_timers(barrier);
	for (size_t i = 0; i < barrier->count; i++) {
		informer_unobserve(&barrier->guests[i]->observer);
		informer_unref(barrier->guests[i]->informer);
		alloc_free(barrier->guests[i]);
	}
	alloc_free(barrier->guests);
	alloc_object_free(&barrier_type, barrier);
}

/* A list that begins anew after a failure must bring more than the one before did, or a list that always fails on its
 * last page would keep the barrier waiting for ever. One that begins anew for another reason counts from its start. */
static bool has_progressed(struct guest *guest)
{
	struct informer_report report;
	bool synced = guest->synced, more;
	informer_report(guest->informer, &report);
	if (report.counts.lists != guest->lists && !report.attempts)
		guest->objects = 0;
	guest->lists = report.counts.lists;
	guest->synced = report.synced;
	guest->failed |= report.attempts > 0;
	more = report.objects > guest->objects;
	if (more)
		guest->objects = report.objects;
	return more || guest->synced != synced;
}

/* One that was given up, as by its factory's shutdown, will never sync, and nobody reads it. */
static bool is_settled(const struct guest *guest)
{
	return informer_has_synced(guest->informer) || informer_is_stopped(guest->informer);
}

static bool is_waited_for(const struct barrier *barrier, const struct guest *guest)
{
	if (is_settled(guest))
		return false;
	bool hopeful = !guest->failed && clock_now() < barrier->progress_at + OPTIONAL_PATIENCE;
	return !guest->optional || hopeful;
}

static size_t count_late(const struct barrier *barrier)
{
	size_t late = 0;
	for (size_t i = 0; i < barrier->count; i++)
		late += is_waited_for(barrier, barrier->guests[i]);
	return late;
}

static bool is_any_needed(const struct barrier *barrier)
{
	for (size_t i = 0; i < barrier->count; i++)
		if (!barrier->guests[i]->optional && !is_settled(barrier->guests[i]))
			return true;
	return false;
}

static void announce_opening(const struct barrier *barrier)
{
	double took = clock_now() - barrier->started_at;
	if (barrier->count == 1)
		log_info(NULL, "the cache has synced, after %.2f s", took);
	else
		log_info(NULL, "all %zu caches have synced, after %.2f s", barrier->count, took);
}

/* Ends in the call: the barrier may be freed in it. */
static void finish(struct barrier *barrier, enum barrier_outcome outcome)
{
	stop_timers(barrier);
	barrier->done = true;
	barrier->open = outcome == BARRIER_OPEN;
	if (barrier->options.announce && barrier->open && barrier->count)
		announce_opening(barrier);
	if (barrier->options.on_done)
		barrier->options.on_done(barrier->options.data, outcome);
}

/* The nearer of the two limits; none when neither is set. */
static double next_limit(const struct barrier *barrier)
{
	double at = INFINITY;
	if (barrier->options.patience > 0)
		at = barrier->progress_at + barrier->options.patience;
	if (barrier->options.timeout > 0)
		at = fmin(at, barrier->started_at + barrier->options.timeout);
	return at;
}

static void arm_limit(struct barrier *barrier)
{
	double at = next_limit(barrier);
	if (isfinite(at))
		loop_timer_start(barrier->loop, &barrier->limit, fmax(at - clock_now(), 0));
}

static void run_check(void *data)
{
	struct barrier *barrier = data;
	bool progressed = false;
	for (size_t i = 0; i < barrier->count; i++)
		progressed |= has_progressed(barrier->guests[i]);
	if (progressed)
		barrier->progress_at = clock_now();
	if (!count_late(barrier))
		finish(barrier, BARRIER_OPEN);
}

/* Progress moves the limit without moving the timer, so that it costs nothing while objects come in. */
static void on_limit(void *data)
{
	struct barrier *barrier = data;
	if (next_limit(barrier) > clock_now())
		arm_limit(barrier);
	else
		finish(barrier, is_any_needed(barrier) ? BARRIER_LATE : BARRIER_OPEN);
}

static void on_unwait(void *data)
{
	struct barrier *barrier = data;
	double left = barrier->progress_at + OPTIONAL_PATIENCE - clock_now();
	if (left > 0)
		loop_timer_start(barrier->loop, &barrier->unwait, left);
	else
		run_check(barrier);
}

static void on_announcement(void *data)
{
	struct barrier *barrier = data;
	size_t count = count_late(barrier);
	struct buf late;
	buf_init(&late, 0);
	barrier_late(barrier, &late);
	if (count)
		log_warn(NULL, "waiting for %zu of %zu caches: %s", count, barrier->count, buf_text(&late));
	buf_fini(&late);
	barrier->gap = fmin(barrier->gap * 2, LAST_GAP);
	loop_timer_start(barrier->loop, &barrier->announcement, barrier->gap);
}

void barrier_start(struct barrier *barrier)
{
	if (barrier->started)
		return;
	barrier->started = true;
	barrier->started_at = barrier->progress_at = clock_now();
	arm_limit(barrier);
	if (barrier->options.announce)
		loop_timer_start(barrier->loop, &barrier->announcement, barrier->gap);
	loop_timer_start(barrier->loop, &barrier->unwait, OPTIONAL_PATIENCE);
	loop_post(barrier->loop, &barrier->job);
}

bool barrier_is_open(const struct barrier *barrier)
{
	return barrier->open;
}

static size_t widest(const struct barrier *barrier, const char *(*cell)(const struct informer_report *),
		     const char *head)
{
	size_t most = strlen(head);
	for (size_t i = 0; i < barrier->count; i++) {
		struct informer_report report;
		informer_report(barrier->guests[i]->informer, &report);
		size_t length = strlen(cell(&report));
		most = length > most ? length : most;
	}
	return most;
}

static const char *label_cell(const struct informer_report *report)
{
	return report->label;
}

/* A synced one that streams has no more to say than that. */
static const char *state_cell(const struct informer_report *report)
{
	return report->synced && !*report->message ? "synced" : report->state;
}

bool barrier_holds(const struct barrier *barrier, const struct informer *informer)
{
	return find_guest(barrier, informer) != NULL;
}

void barrier_report(const struct barrier *barrier, struct buf *out)
{
	int label = (int)widest(barrier, label_cell, "INFORMER"), state = (int)widest(barrier, state_cell, "STATE");
	buf_append_format(out, "%-*s  %-6s  %-*s  %7s  %8s  %s\n", label, "INFORMER", "SYNCED", state, "STATE",
			  "OBJECTS", "ATTEMPTS", "WHY");
	for (size_t i = 0; i < barrier->count; i++) {
		struct informer_report report;
		informer_report(barrier->guests[i]->informer, &report);
		buf_append_format(out, "%-*s  %-6s  %-*s  %7zu  %8u  %s\n", label, report.label,
				  report.synced ? "yes" : "no", state, state_cell(&report), report.objects,
				  report.attempts, *report.message ? report.message : "-");
	}
}

void barrier_late(const struct barrier *barrier, struct buf *out)
{
	size_t before = out->length;
	for (size_t i = 0; i < barrier->count; i++) {
		struct informer_report report;
		if (!is_waited_for(barrier, barrier->guests[i]))
			continue;
		informer_report(barrier->guests[i]->informer, &report);
		buf_append_format(out, "%s%s: %s", out->length > before ? "; " : "", report.label, report.state);
		if (*report.message)
			buf_append_format(out, ": %s", report.message);
		else
			buf_append_format(out, ", %zu object%s so far", report.objects, report.objects == 1 ? "" : "s");
	}
}
