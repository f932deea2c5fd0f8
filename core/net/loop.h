/* loop: the one libev loop of the process, its timers, signals and the work that is ready.
 *
 * Callbacks of libev, libcurl and libmicrohttpd never run program logic: they record what happened and post a job.
 * After each turn of libev the loop runs due timers and posted jobs, in the order posted; script code runs there, never
 * inside a library's callback frame. A job that posts jobs has them run in the next round of the same drain, with the
 * sockets looked at between rounds. All functions are for the loop's own thread, except loop_call. */
#ifndef PERILUNE_NET_LOOP_H
#define PERILUNE_NET_LOOP_H

#include <stdbool.h>

#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"

struct loop;
typedef void (*loop_fn)(void *data);

struct loop *loop_new(struct err *err); /* NULL with err when the system gives no descriptor */
void loop_free(struct loop *loop);      /* runs the deferred frees; no timer or job may be left */

void loop_run(struct loop *loop); /* turns until loop_stop */
void loop_stop(
    struct loop *loop); /* loop_run returns after the present round; what it posted waits for the next turn */
/* One turn: waits for at most max_wait seconds (0: not at all) and drains. For specs, and for waiting in place at
 * shutdown. Not reentrant. */
void loop_turn(struct loop *loop, double max_wait);
/* clock_now() when the present round of work began; 0 while the loop waits for events, so that idleness is no stall.
 * Any thread. */
double loop_busy_since(const struct loop *loop);

/* Until when a job that has much to do goes on, on clock_now's scale, before it posts itself for the rest. The jobs of
 * one round share its time, so that the loop is not held for longer where there are many; each has some. */
double loop_until(const struct loop *loop);

/* A job waits at most once. Embedded in its owner, initialised once, cancelled before the owner is freed. */
struct loop_job {
	struct list node;
	loop_fn run;
	void *data;
};
void loop_job_init(struct loop_job *job, loop_fn run, void *data);
void loop_post(struct loop *loop, struct loop_job *job); /* harmless when it already waits */
/* The same, ahead of all other jobs and of due timers: for what ends those. */
void loop_post_first(struct loop *loop, struct loop_job *job);
/* The same, when there is nothing else to do and nothing has come: one such job at a time, with a look at the sockets
 * before each. For what would only be in the way of others. It is no work: loop_is_at_rest does not know it. */
void loop_post_last(struct loop *loop, struct loop_job *job);
void loop_job_cancel(struct loop_job *job); /* harmless when it does not wait */

/* A timer runs once at its time (clock_now's scale) unless stopped. Embedded, as jobs are. */
struct loop_timer {
	struct heap_node node;
	loop_fn run;
	void *data;
};
void loop_timer_init(struct loop_timer *timer, loop_fn run, void *data);
void loop_timer_start(struct loop *loop, struct loop_timer *timer,
		      double after); /* seconds from now; moves it when it runs already */
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);
bool loop_timer_active(const struct loop_timer *timer);

/* No job waits and no timer is due: but for what comes from outside, nothing happens before loop_next_timer. */
bool loop_is_at_rest(const struct loop *loop);
double loop_next_timer(const struct loop *loop); /* on clock_now's scale; INFINITY: there is none */
/* fn is called at the end of each turn, where it may post jobs; NULL: no more. While the clock stands still
 * (clock_stop) there is a turn at least every tenth of a real second. */
void loop_on_turn(struct loop *loop, loop_fn fn, void *data);

/* fn is called whenever the wait for events has ended, before any byte that came is read and any that waits is written.
 * It may cancel requests and post jobs, and does nothing else. For what must look at the clock first, as this process
 * may have been stopped for long. NULL: no more. */
void loop_on_wake(struct loop *loop, loop_fn fn, void *data);

/* Frees later, at the end of the present round: for an object that may still be on the stack of a callback. */
void loop_free_later(struct loop *loop, loop_fn free_fn, void *object);

/* The same for what takes long to free: once in each round, until it returns true; it frees until that time on
 * clock_now's scale, and a little in any case. loop_free lets it finish, with what it frees later. */
void loop_free_slowly(struct loop *loop, bool (*free_some)(void *object, double until), void *object);

/* Calls fn in a drain for each arrival of signo (several may be folded into one). fn NULL gives the signal back to its
 * default. */
void loop_on_signal(struct loop *loop, int signo, loop_fn fn, void *data);

/* From another thread: runs fn(data) in the loop and waits for it, seconds at most. 0 when it ran. -1 when it did not
 * in time, and then it never will. data is the caller's again after the return. */
int loop_call(struct loop *loop, loop_fn fn, void *data, double seconds);

#endif
