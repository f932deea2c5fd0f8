#include "net/loop.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <ev.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop_ev.h"

ALLOC_TYPE(loop_type, "loop");

/* libev's own default for a wait without timers; a bound keeps the arithmetic of far timers finite. */
#define LONGEST_WAIT 59.743
#define LEAST_WAIT 1e-5 /* less is none */
#define STOPPED_WAIT 0.1
#define ROUND 0.005      /* is shared by its jobs */
#define LEAST_TURN 0.001 /* of a job */

struct deferred {
	loop_fn free_fn;
	void *object;
};

/* One of loop_free_slowly. */
struct ending {
	struct list node;
	bool (*free_some)(void *object, double until);
	void *object;
};

struct signal_row {
	ev_signal watcher;
	struct loop_job job;
};

enum call_state { CALL_WAITING, CALL_RUNNING, CALL_RAN };

/* Lives on the calling thread's stack: it is in no list once loop_call returns. */
struct call {
	struct list node;
	loop_fn fn;
	void *data;
	enum call_state state;
};

struct loop {
	struct ev_loop *ev;
	ev_timer wait; /* ends ev_run at the first timer of the heap, or at the turn's max_wait */
	struct heap timers;
	bool timers_running;
	double timers_now;       /* what was due at the last round is not later than this */
	struct list first, jobs; /* the former run ahead of the timers */
	struct list last;        /* run when nothing else does */
	struct deferred *deferred;
	size_t deferred_count, deferred_capacity;
	struct list endings;
	struct signal_row *signals[NSIG];
	bool stopped;
	loop_fn on_turn, on_wake;
	void *on_turn_data, *on_wake_data;
	ev_check wake;             /* active while on_wake is set */
	_Atomic double busy_since; /* 0 while it waits */

	ev_async calls_async;
	struct loop_job calls_job;
	pthread_mutex_t calls_lock;
	pthread_cond_t calls_changed;
	struct list calls; /* guarded by calls_lock; holds the WAITING ones */
};

static void on_wait(struct ev_loop *ev, ev_timer *watcher, int events)
{
	(void)ev, (void)watcher, (void)events;
}

static void on_calls(struct ev_loop *ev, ev_async *watcher, int events)
{
	(void)ev, (void)events;
	struct loop *loop = watcher->data;
	loop_post(loop, &loop->calls_job);
}

static struct call *next_call(struct loop *loop)
{
	struct list *node = list_pop(&loop->calls);
	struct call *call = node ? LIST_ENTRY(node, struct call, node) : NULL;
	if (call)
		call->state = CALL_RUNNING;
	return call;
}

static void run_calls(void *data)
{
	struct loop *loop = data;
	pthread_mutex_lock(&loop->calls_lock);
	for (struct call *call; (call = next_call(loop));) {
		pthread_mutex_unlock(&loop->calls_lock);
		call->fn(call->data);
		pthread_mutex_lock(&loop->calls_lock);
		call->state = CALL_RAN;
		pthread_cond_broadcast(&loop->calls_changed);
	}
	pthread_mutex_unlock(&loop->calls_lock);
}

/* The caller gives up at its time only while the call still waits. One that runs is waited for to its end, as it holds
 * the caller's data. */
static void wait_for_call(struct loop *loop, struct call *call, const struct timespec *until)
{
	int timed_out = 0;
	while (call->state == CALL_WAITING && !timed_out)
		timed_out = pthread_cond_timedwait(&loop->calls_changed, &loop->calls_lock, until) == ETIMEDOUT;
	while (call->state == CALL_RUNNING)
		pthread_cond_wait(&loop->calls_changed, &loop->calls_lock);
	list_remove(&call->node);
}

static struct timespec monotonic_after(double seconds)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	double whole = floor(seconds);
	at.tv_sec += (time_t)whole;
	at.tv_nsec += (long)((seconds - whole) * 1e9);
	if (at.tv_nsec >= 1000000000L) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000L;
	}
	return at;
}

int loop_call(struct loop *loop, loop_fn fn, void *data, double seconds)
{
	struct timespec until = monotonic_after(fmax(seconds, 0));
	struct call call = {.fn = fn, .data = data, .state = CALL_WAITING};
	list_init(&call.node);
	pthread_mutex_lock(&loop->calls_lock);
	list_add_tail(&loop->calls, &call.node);
	ev_async_send(loop->ev, &loop->calls_async);
	wait_for_call(loop, &call, &until);
	pthread_mutex_unlock(&loop->calls_lock);
	return call.state == CALL_RAN ? 0 : -1;
}

static void init_calls(struct loop *loop)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&loop->calls_changed, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&loop->calls_lock, NULL);
	list_init(&loop->calls);
	loop_job_init(&loop->calls_job, run_calls, loop);
	ev_async_init(&loop->calls_async, on_calls);
	loop->calls_async.data = loop;
	ev_async_start(loop->ev, &loop->calls_async);
}

static void on_check(struct ev_loop *ev, ev_check *watcher, int events)
{
	(void)ev, (void)events;
	struct loop *loop = watcher->data;
	loop->on_wake(loop->on_wake_data);
}

/* libev calls it ahead of all that the same wait brought, since nothing else here has such a priority. */
static void init_wake(struct loop *loop)
{
	ev_check_init(&loop->wake, on_check);
	ev_set_priority(&loop->wake, EV_MAXPRI);
	loop->wake.data = loop;
}

struct loop *loop_new(struct err *err)
{
	/* The environment can't choose a back end, and a signal that the parent blocked is let through when it is
	 * watched. */
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
	if (!ev) {
		err_set(err, "", "no event loop: %s", strerror(errno));
		return NULL;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* a parent may have it ignored, and then the exit codes of children are lost */
	struct loop *loop = alloc_object(&loop_type, sizeof(*loop));
	loop->ev = ev;
	ev_timer_init(&loop->wait, on_wait, 0, 0);
	heap_init(&loop->timers);
	list_init(&loop->first);
	list_init(&loop->jobs);
	list_init(&loop->last);
	list_init(&loop->endings);
	init_calls(loop);
	init_wake(loop);
	return loop;
}

static void run_deferred(struct loop *loop)
{
	for (size_t i = 0; i < loop->deferred_count; i++)
		loop->deferred[i].free_fn(loop->deferred[i].object);
	loop->deferred_count = 0;
}

static void run_endings(struct loop *loop, double until)
{
	while (!list_is_empty(&loop->endings)) {
		struct ending *ending = LIST_ENTRY(loop->endings.next, struct ending, node);
		if (!ending->free_some(ending->object, until))
			return;
		list_remove(&ending->node);
		alloc_free(ending);
		if (clock_now() >= until)
			return;
	}
}

void loop_free(struct loop *loop)
{
	run_deferred(loop);
	run_endings(loop, INFINITY);
	run_deferred(loop); /* what the endings left */
	for (int signo = 0; signo < NSIG; signo++)
		loop_on_signal(loop, signo, NULL, NULL);
	loop_job_cancel(&loop->calls_job);
	ev_async_stop(loop->ev, &loop->calls_async);
	pthread_cond_destroy(&loop->calls_changed);
	pthread_mutex_destroy(&loop->calls_lock);
	ev_timer_stop(loop->ev, &loop->wait);
	loop_on_wake(loop, NULL, NULL);
	ev_loop_destroy(loop->ev);
	heap_fini(&loop->timers);
	alloc_free(loop->deferred);
	alloc_object_free(&loop_type, loop);
}

struct ev_loop *loop_ev(struct loop *loop)
{
	return loop->ev;
}

/* A timer that is started while timers run is due in the next round at the earliest. So each round's time is later than
 * the one before, if only by the least that a double can tell, even where the clock is replaced and stands still. */
static double next_time(const struct loop *loop)
{
	double now = clock_now(), last = loop->timers_now;
	return now <= last && last < now + LEAST_WAIT ? nextafter(last, INFINITY) : now;
}

double loop_next_timer(const struct loop *loop)
{
	struct heap_node *first = heap_first(&loop->timers);
	return first ? first->at : INFINITY;
}

static bool has_jobs(const struct loop *loop)
{
	return !list_is_empty(&loop->first) || !list_is_empty(&loop->jobs) || !list_is_empty(&loop->endings);
}

bool loop_is_at_rest(const struct loop *loop)
{
	return !has_jobs(loop) && loop_next_timer(loop) > next_time(loop);
}

void loop_on_turn(struct loop *loop, loop_fn fn, void *data)
{
	loop->on_turn = fn;
	loop->on_turn_data = data;
}

void loop_on_wake(struct loop *loop, loop_fn fn, void *data)
{
	ev_check_stop(loop->ev, &loop->wake);
	loop->on_wake = fn;
	loop->on_wake_data = data;
	if (fn)
		ev_check_start(loop->ev, &loop->wake);
}

/* While the clock stands still no timer becomes due by waiting. */
static double time_to_wait(struct loop *loop, double max_wait)
{
	if (has_jobs(loop) || !list_is_empty(&loop->last))
		return 0;
	if (clock_is_stopped())
		return loop_is_at_rest(loop) ? fmin(max_wait, STOPPED_WAIT) : 0;
	return fmax(fmin(max_wait, loop_next_timer(loop) - clock_now()), 0);
}

static void poll_events(struct loop *loop, double wait)
{
	if (wait < LEAST_WAIT) {
		ev_run(loop->ev, EVRUN_NOWAIT);
		return;
	}
	/* A timer counts from the loop's cached time, which is old after a long drain. */
	ev_now_update(loop->ev);
	ev_timer_set(&loop->wait, fmin(wait, LONGEST_WAIT), 0);
	ev_timer_start(loop->ev, &loop->wait);
	atomic_store(&loop->busy_since, 0);
	ev_run(loop->ev, EVRUN_ONCE);
	ev_timer_stop(loop->ev, &loop->wait);
}

static void run_timers(struct loop *loop)
{
	loop->timers_now = next_time(loop);
	loop->timers_running = true;
	for (struct heap_node *node; (node = heap_first(&loop->timers)) && node->at <= loop->timers_now;) {
		heap_remove(&loop->timers, node);
		struct loop_timer *timer = LIST_ENTRY(node, struct loop_timer, node);
		timer->run(timer->data);
	}
	loop->timers_running = false;
}

static void run_jobs(struct list *jobs)
{
	struct list round;
	list_init(&round);
	list_move(&round, jobs);
	for (struct list *node; (node = list_pop(&round));) {
		struct loop_job *job = LIST_ENTRY(node, struct loop_job, node);
		job->run(job->data);
	}
}

/* One round: what was due and waiting at its start. What it posts runs in the next one. */
static void run_round(struct loop *loop)
{
	atomic_store(&loop->busy_since, clock_now());
	run_jobs(&loop->first);
	run_timers(loop);
	run_jobs(&loop->jobs);
	run_deferred(loop);
	if (!list_is_empty(&loop->endings))
		run_endings(loop, loop_until(loop));
}

static void run_last(struct loop *loop)
{
	struct list *node = loop_is_at_rest(loop) ? list_pop(&loop->last) : NULL;
	if (!node)
		return;
	struct loop_job *job = LIST_ENTRY(node, struct loop_job, node);
	job->run(job->data);
}

void loop_turn(struct loop *loop, double max_wait)
{
	poll_events(loop, time_to_wait(loop, max_wait));
	run_last(loop);
	run_round(loop);
	while (has_jobs(loop) && !loop->stopped) {
		poll_events(loop, 0);
		run_round(loop);
	}
	if (loop->on_turn)
		loop->on_turn(loop->on_turn_data);
}

void loop_run(struct loop *loop)
{
	while (!loop->stopped)
		loop_turn(loop, LONGEST_WAIT);
	loop->stopped = false;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

double loop_busy_since(const struct loop *loop)
{
	return atomic_load(&loop->busy_since);
}

double loop_until(const struct loop *loop)
{
	return fmax(loop_busy_since(loop) + ROUND, clock_now() + LEAST_TURN);
}

void loop_job_init(struct loop_job *job, loop_fn run, void *data)
{
	list_init(&job->node);
	job->run = run;
	job->data = data;
}

void loop_post(struct loop *loop, struct loop_job *job)
{
	if (list_is_empty(&job->node))
		list_add_tail(&loop->jobs, &job->node);
}

void loop_post_first(struct loop *loop, struct loop_job *job)
{
	if (list_is_empty(&job->node))
		list_add_tail(&loop->first, &job->node);
}

void loop_post_last(struct loop *loop, struct loop_job *job)
{
	if (list_is_empty(&job->node))
		list_add_tail(&loop->last, &job->node);
}

void loop_job_cancel(struct loop_job *job)
{
	list_remove(&job->node);
}

void loop_timer_init(struct loop_timer *timer, loop_fn run, void *data)
{
	memset(timer, 0, sizeof(*timer));
	timer->run = run;
	timer->data = data;
}

void loop_timer_start(struct loop *loop, struct loop_timer *timer, double after)
{
	double at = clock_now() + fmax(after, 0);
	if (loop->timers_running && at <= loop->timers_now)
		at = nextafter(loop->timers_now, INFINITY);
	heap_push(&loop->timers, &timer->node, at);
}

void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	heap_remove(&loop->timers, &timer->node);
}

bool loop_timer_active(const struct loop_timer *timer)
{
	return timer->node.place != 0;
}

void loop_free_later(struct loop *loop, loop_fn free_fn, void *object)
{
	if (loop->deferred_count == loop->deferred_capacity) {
		loop->deferred_capacity = loop->deferred_capacity ? 2 * loop->deferred_capacity : 16;
		loop->deferred = alloc_resize(loop->deferred, loop->deferred_capacity * sizeof(*loop->deferred));
	}
	loop->deferred[loop->deferred_count++] = (struct deferred){free_fn, object};
}

void loop_free_slowly(struct loop *loop, bool (*free_some)(void *object, double until), void *object)
{
	struct ending *ending = alloc_zero(sizeof(*ending));
	ending->free_some = free_some;
	ending->object = object;
	list_add_tail(&loop->endings, &ending->node);
}

static void on_signal(struct ev_loop *ev, ev_signal *watcher, int events)
{
	(void)ev, (void)events;
	struct loop *loop = watcher->data;
	loop_post(loop, &loop->signals[watcher->signum]->job);
}

static void drop_signal(struct loop *loop, int signo)
{
	struct signal_row *row = loop->signals[signo];
	if (!row)
		return;
	ev_signal_stop(loop->ev, &row->watcher);
	loop_job_cancel(&row->job);
	alloc_free(row);
	loop->signals[signo] = NULL;
}

void loop_on_signal(struct loop *loop, int signo, loop_fn fn, void *data)
{
	drop_signal(loop, signo);
	if (!fn)
		return;
	struct signal_row *row = alloc_zero(sizeof(*row));
	loop->signals[signo] = row;
	loop_job_init(&row->job, fn, data);
	ev_signal_init(&row->watcher, on_signal, signo);
	row->watcher.data = loop;
	ev_signal_start(loop->ev, &row->watcher);
}
