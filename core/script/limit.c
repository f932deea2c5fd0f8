#include "script/limit.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* glibc 2.36 has the field only under this name. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define LONGEST 86400.0 /* the timer is set again where an entry may take longer */

/* Written by the loop's thread and read by its signal handler. */
static struct state *volatile watched;
static volatile double deadline;
static volatile sig_atomic_t ticking, armed;
static timer_t timer;
static bool timer_made;

/* Rounded up to a microsecond, as a time of 0 would stop the timer. */
static void set_timer(double seconds)
{
	long long microseconds = (long long)((seconds < LONGEST ? seconds : LONGEST) * 1e6) + 1;
	struct itimerspec spec = {
	    .it_value = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000}};
	if (!timer_made)
		return;
	ticking = 1; /* before: it may go off at once */
	if (timer_settime(timer, 0, &spec, NULL))
		ticking = 0;
}

/* The script's own line, not that of a function of ours or of LuaJIT's that it called. */
static void note_place(lua_State *L, struct state *state)
{
	lua_Debug record;
	strcpy(state->killed_at, "?");
	for (int level = 0; lua_getstack(L, level, &record); level++) {
		lua_getinfo(L, "Sl", &record);
		if (record.currentline <= 0 || strncmp(record.short_src, "perilune.", 9) == 0)
			continue;
		snprintf(state->killed_at, sizeof(state->killed_at), "%s:%d", record.short_src, record.currentline);
		return;
	}
}

static void stop(lua_State *L)
{
	struct state *state = state_of(L);
	if (state->killed != KILL_TIME)
		note_place(L, state);
	state->killed = KILL_TIME;
	lua_pushliteral(L, "stopped: ran too long without yielding");
	lua_error(L);
}

static void kill_hook(lua_State *L, lua_Debug *record)
{
	(void)record;
	stop(L);
}

/* In the signal handler: nothing here but what POSIX or LuaJIT allows there. */
static void watch(void)
{
	struct state *state = watched;
	if (!state || deadline == 0)
		return;
	double left = deadline - clock_real();
	if (left > 0) {
		set_timer(left);
		return;
	}
	armed = 1;
	lua_sethook(state->L, kill_hook, LUA_MASKCOUNT, 1);
}

static void on_alarm(int signo)
{
	(void)signo;
	int interrupted = errno;
	ticking = 0;
	watch();
	errno = interrupted;
}

static void make_timer(void)
{
	static bool tried;
	if (tried)
		return;
	tried = true;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	timer_made = sigaction(SIGALRM, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
	if (!timer_made)
		log_error(NULL, "no timer (%s): scripts run without --time-limit", strerror(errno));
}

void limit_enter(struct limit *limit, struct state *state)
{
	make_timer();
	limit->outer = watched;
	watched = NULL; /* the handler touches nothing until all is set */
	limit->outer_deadline = deadline;
	limit->outer_armed = armed;
	deadline = state->time_limit > 0 ? clock_real() + state->time_limit : 0;
	armed = 0;
	watched = state;
	if (deadline > 0 && !ticking)
		set_timer(state->time_limit);
}

void limit_leave(const struct limit *limit)
{
	struct state *state = watched;
	watched = NULL;
	if (armed)
		lua_sethook(state->L, NULL, 0, 0);
	armed = limit->outer_armed;
	deadline = limit->outer_deadline;
	watched = limit->outer;
	if (watched && deadline > 0 && !ticking)
		set_timer(0.001);
}

bool limit_is_over(void)
{
	return armed;
}

void limit_check(lua_State *L)
{
	if (armed)
		stop(L);
}
