/* loop_driver CASE: one behaviour of core/net/loop.h; prints what happened, a word a line. The spec judges. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"

static struct loop *loop;
static double now = 1000;

static double virtual_now(void *data)
{
	(void)data;
	return now;
}

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

static void say_data(void *data)
{
	say(data);
}

static void stop(void *data)
{
	(void)data;
	loop_stop(loop);
}

/* ---- jobs */

static struct loop_job job_a, job_b, job_c;

static void post_b(void *data)
{
	say(data);
	loop_post(loop, &job_b);
	loop_post(loop, &job_b);
	say("posted");
}

static void case_jobs(void)
{
	loop_job_init(&job_a, post_b, "a");
	loop_job_init(&job_b, say_data, "b");
	loop_job_init(&job_c, say_data, "c");
	loop_post(loop, &job_a);
	loop_post(loop, &job_c);
	loop_post(loop, &job_a);
	loop_turn(loop, 0);
	say("again");
	loop_post(loop, &job_c);
	loop_post(loop, &job_b);
	loop_job_cancel(&job_c);
	loop_job_cancel(&job_c);
	loop_turn(loop, 0);
}

static void cancel_c(void *data)
{
	(void)data;
	say("cancels c");
	loop_job_cancel(&job_c);
}

static void case_cancel_in_round(void)
{
	loop_job_init(&job_a, cancel_c, NULL);
	loop_job_init(&job_c, say_data, "c");
	loop_post(loop, &job_a);
	loop_post(loop, &job_c);
	loop_turn(loop, 0);
}

static void on_wake(void *data)
{
	(void)data;
	say("wake");
	loop_post_first(loop, &job_c);
	loop_post_first(loop, &job_c);
}

/* What is posted on waking comes before a timer that is due and a job that was there already. */
static void case_wakes(void)
{
	static struct loop_timer timer;
	loop_job_init(&job_a, say_data, "a");
	loop_job_init(&job_c, say_data, "first");
	loop_timer_init(&timer, say_data, "timer");
	loop_timer_start(loop, &timer, 0);
	loop_post(loop, &job_a);
	loop_on_wake(loop, on_wake, NULL);
	loop_turn(loop, 0);
	loop_on_wake(loop, NULL, NULL);
	loop_post_first(loop, &job_c);
	loop_post(loop, &job_a);
	loop_turn(loop, 1);
}

/* A turn runs one of them, and only when there was nothing else; none waits for one that is left. */
static void case_last(void)
{
	loop_job_init(&job_a, post_b, "a");
	loop_job_init(&job_b, say_data, "b");
	loop_job_init(&job_c, say_data, "last");
	static struct loop_job other;
	loop_job_init(&other, say_data, "other last");
	loop_post_last(loop, &job_c);
	loop_post_last(loop, &job_c);
	loop_post_last(loop, &other);
	loop_post(loop, &job_a);
	for (int turn = 0; turn < 3; turn++) {
		say(loop_is_at_rest(loop) ? "at rest" : "at work");
		loop_turn(loop, 1000);
	}
	loop_post_last(loop, &job_c);
	loop_job_cancel(&job_c);
	loop_turn(loop, 0);
}

static int rounds;

static void post_itself(void *data)
{
	(void)data;
	rounds++;
	loop_post(loop, &job_a);
}

/* A job that posts itself keeps neither timers nor signals from their turn. */
static void case_busy_job(void)
{
	static struct loop_timer timer;
	loop_job_init(&job_a, post_itself, NULL);
	loop_timer_init(&timer, say_data, "timer");
	loop_timer_start(loop, &timer, 0.05);
	loop_on_signal(loop, SIGTERM, stop, NULL);
	loop_post(loop, &job_a);
	say("running");
	loop_run(loop);
	loop_job_cancel(&job_a);
	say(rounds > 100 ? "many rounds" : "few rounds");
}

/* ---- timers */

static struct loop_timer timer_a, timer_b, timer_c;

static void restart_a(void *data)
{
	say(data);
	loop_timer_start(loop, &timer_a, 0);
}

static void stop_c(void *data)
{
	say(data);
	loop_timer_stop(loop, &timer_c);
}

static void case_timers(void)
{
	clock_replace(virtual_now, NULL, NULL);
	loop_timer_init(&timer_a, say_data, "a");
	loop_timer_init(&timer_b, stop_c, "b stops c");
	loop_timer_init(&timer_c, say_data, "c");
	loop_timer_start(loop, &timer_a, 20);
	loop_timer_start(loop, &timer_b, 10);
	loop_timer_start(loop, &timer_c, 15);
	loop_turn(loop, 0);
	say("moved by 16");
	now += 16;
	loop_turn(loop, 0);
	say(loop_timer_active(&timer_a) && !loop_timer_active(&timer_c) ? "a runs" : "wrong");
	loop_timer_start(loop, &timer_a, 100);
	now += 90;
	loop_turn(loop, 0);
	say("restarted");
	now += 11;
	loop_turn(loop, 0);
	now += 1000;
	loop_turn(loop, 0);
}

/* One that starts itself with no delay runs once a turn, even where the clock stands still. */
static void case_timer_restarts(void)
{
	clock_replace(virtual_now, NULL, NULL);
	loop_timer_init(&timer_a, restart_a, "a");
	loop_timer_start(loop, &timer_a, 0);
	loop_turn(loop, 0);
	say("turn");
	loop_turn(loop, 0);
	say("turn");
	now += 1;
	loop_turn(loop, 0);
	say("turn");
	loop_turn(loop, 10);
	loop_timer_stop(loop, &timer_a);
	now = 7;
	loop_timer_init(&timer_b, say_data, "b");
	loop_timer_start(loop, &timer_b, 1);
	loop_turn(loop, 0);
	say("a clock that was set back");
	now = 8;
	loop_turn(loop, 0);
}

static void case_waits(void)
{
	double before = clock_now();
	loop_timer_init(&timer_a, say_data, "a");
	loop_timer_start(loop, &timer_a, 0.1);
	loop_turn(loop, 5);
	double took = clock_now() - before;
	say(took >= 0.1 && took < 2 ? "at its time" : "not at its time");
	before = clock_now();
	loop_turn(loop, 0.05);
	took = clock_now() - before;
	say(took >= 0.05 && took < 2 ? "max_wait" : "not max_wait");
	before = clock_now();
	loop_turn(loop, 0);
	say(clock_now() - before < 0.05 ? "at once" : "not at once");
}

/* ---- deferred frees */

static void free_word(void *object)
{
	printf("frees %s\n", (char *)object);
}

static void free_later(void *data)
{
	loop_free_later(loop, free_word, data);
	say("later");
	loop_post(loop, &job_b);
}

static bool free_slowly(void *object, double until)
{
	(void)until;
	say("frees slowly");
	loop_free_later(loop, free_word, object);
	return true;
}

static void case_frees(void)
{
	loop_job_init(&job_a, free_later, "x");
	loop_job_init(&job_b, say_data, "next round");
	loop_job_init(&job_c, say_data, "same round");
	loop_post(loop, &job_a);
	loop_post(loop, &job_c);
	loop_turn(loop, 0);
	loop_free_later(loop, free_word, "y");
	loop_free_slowly(loop, free_slowly, "z");
}

/* ---- signals */

static void on_usr1(void *data)
{
	say(data);
}

static void case_signals(void)
{
	loop_on_signal(loop, SIGUSR1, on_usr1, "usr1");
	loop_on_signal(loop, SIGTERM, stop, NULL);
	for (int i = 0; i < 3; i++)
		raise(SIGUSR1);
	say("raised");
	loop_turn(loop, 1);
	loop_on_signal(loop, SIGUSR1, on_usr1, "other");
	raise(SIGUSR1);
	loop_turn(loop, 1);
	raise(SIGPIPE);
	int ends[2];
	if (pipe(ends) == 0) {
		close(ends[0]);
		say(write(ends[1], "x", 1) < 0 ? "no SIGPIPE" : "written");
	}
	raise(SIGTERM);
	loop_run(loop);
	say("stopped");
	loop_on_signal(loop, SIGTERM, NULL, NULL);
	raise(SIGTERM); /* its default ends the program */
	say("not ended");
}

/* ---- calls */

static atomic_long ran, told, refused;
static atomic_int threads_left;
static bool callers_data_valid = true;

struct call_data {
	int magic;
	bool in_call;
};

static void count_run(void *data)
{
	struct call_data *call = data;
	if (call->magic != 4711)
		callers_data_valid = false;
	usleep((useconds_t)(rand() % 200));
	atomic_fetch_add(&ran, 1);
	if (call->magic != 4711)
		callers_data_valid = false;
}

/* Time-outs about as long as a call takes, so that giving up races with running. */
static void *call_often(void *seed)
{
	unsigned state = (unsigned)(size_t)seed;
	for (int i = 0; i < 300; i++) {
		struct call_data call = {4711, false};
		double seconds = (double)(rand_r(&state) % 400) / 1e6;
		if (loop_call(loop, count_run, &call, seconds) == 0)
			atomic_fetch_add(&told, 1);
		else
			atomic_fetch_add(&refused, 1);
		call.magic = 0;
	}
	atomic_fetch_sub(&threads_left, 1);
	return NULL;
}

static void case_calls_race(void)
{
	pthread_t threads[4];
	atomic_store(&threads_left, 4);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, call_often, (void *)(i + 1));
	while (atomic_load(&threads_left))
		loop_turn(loop, 0.01);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	loop_turn(loop, 0);
	say(atomic_load(&ran) == atomic_load(&told) ? "ran as told" : "not as told");
	say(atomic_load(&told) + atomic_load(&refused) == 1200 ? "all returned" : "some lost");
	say(atomic_load(&told) > 0 && atomic_load(&refused) > 0 ? "both happened" : "no race");
	say(callers_data_valid ? "data valid" : "data gone");
}

static void *call_once(void *data)
{
	double before = clock_now();
	int result = loop_call(loop, say_data, data, 0.1);
	say(result == 0 ? "ran" : "gave up");
	say(clock_now() - before < 5 ? "in time" : "late");
	atomic_store(&threads_left, 0);
	return NULL;
}

/* The loop does not turn: the call gives up, and does not run when the loop turns again. */
static void case_call_gives_up(void)
{
	pthread_t thread;
	atomic_store(&threads_left, 1);
	pthread_create(&thread, NULL, call_once, "called");
	pthread_join(thread, NULL);
	loop_turn(loop, 0);
	say("turned");
	atomic_store(&threads_left, 1);
	pthread_create(&thread, NULL, call_once, "called");
	while (atomic_load(&threads_left))
		loop_turn(loop, 0.01);
	pthread_join(thread, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
    {"jobs", case_jobs},
    {"wakes", case_wakes},
    {"last", case_last},
    {"cancel_in_round", case_cancel_in_round},
    {"busy_job", case_busy_job},
    {"timers", case_timers},
    {"timer_restarts", case_timer_restarts},
    {"waits", case_waits},
    {"frees", case_frees},
    {"signals", case_signals},
    {"calls_race", case_calls_race},
    {"call_gives_up", case_call_gives_up},
};

int main(int argc, char **argv)
{
	struct err err;
	loop = loop_new(&err);
	if (!loop || argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (strcmp(cases[i].name, argv[1]) == 0)
			cases[i].run();
	loop_free(loop);
	if (alloc_live(stderr))
		say("objects left");
	return 0;
}
