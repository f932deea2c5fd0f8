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
#include "script/stall.h"

/* glibc 2.36 has the field only under this name. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define LONGEST 86400.0 /* the timer is set again where an entry may take longer */

/* Of the present entry: within its time; beyond it, which the log does or does not know yet; being stopped. */
enum stage { IN_TIME, NOTICED, TOLD, STOPPING };

/* Written by the loop's thread and read by its signal handler. */
static struct state *volatile watched;
static volatile double deadline; /* 0: none */
static volatile double rings_at; /* while ticking: when the timer goes off, on clock_real's scale */
static volatile sig_atomic_t ticking, stage;
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
	rings_at = clock_real() + seconds;
	ticking = 1; /* before: it may go off at once */
	if (timer_settime(timer, 0, &spec, NULL))
		ticking = 0;
}

/* The script's own line, not that of a function of ours or of LuaJIT's that it called. */
static void note_place(lua_State *L, struct state *state)
{
	lua_Debug record;
	strcpy(state->seen_at, "?");
	for (int level = 0; lua_getstack(L, level, &record); level++) {
		lua_getinfo(L, "Sl", &record);
		if (record.currentline <= 0 || strncmp(record.short_src, "perilune.", 9) == 0)
			continue;
		snprintf(state->seen_at, sizeof(state->seen_at), "%s:%d", record.short_src, record.currentline);
		break;
	}
	stall_seen_at(state->seen_at);
}

static void tell(const struct state *state, const char *place, double seconds)
{
	log_warn(LOG_FIELDS({"script", state->name}, {"file", place}), "%s%s%s has run for %.1f s without yielding",
		 state->doing ? state->doing : "the script", state->doing_at ? " at " : "",
		 state->doing_at ? state->doing_at : "", seconds);
}

static void notice_hook(lua_State *L, lua_Debug *record)
{
	(void)record;
	struct state *state = state_of(L);
	lua_sethook(L, NULL, 0, 0);
	note_place(L, state);
	tell(state, state->seen_at, LIMIT_NOTICE);
	stage = TOLD;
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
	deadline = 0;
	stage = state->time_limit > 0 ? STOPPING : NOTICED;
	stall_begin(state->name, state->doing, state->doing_at);
	if (stage == STOPPING)
		lua_sethook(state->L, kill_hook, LUA_MASKCOUNT, 1);
	else if (!state->full_library) /* else the hook may be the script's own */
		lua_sethook(state->L, notice_hook, LUA_MASKCOUNT, 1);
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

/* A timer that goes off before the deadline is set again by its handler. */
static void keep_time(double seconds)
{
	if (deadline > 0 && (!ticking || rings_at > deadline))
		set_timer(seconds);
}

void limit_enter(struct limit *limit, struct state *state)
{
	make_timer();
	limit->outer = watched;
	watched = NULL; /* the handler touches nothing until all is set */
	limit->outer_deadline = deadline;
	limit->outer_stage = stage;
	limit->began = clock_real();
	double most = state->time_limit > 0 ? state->time_limit : state->silent ? 0 : LIMIT_NOTICE;
	deadline = most > 0 ? limit->began + most : 0;
	stage = IN_TIME;
	watched = state;
	keep_time(most);
}

static void end_overrun(const struct state *state, const struct limit *limit)
{
	if (!state->full_library || stage == STOPPING)
		lua_sethook(state->L, NULL, 0, 0);
	if (stage != TOLD && !state->killed)
		tell(state, NULL, clock_real() - limit->began);
	stall_end();
}

void limit_leave(const struct limit *limit)
{
	const struct state *state = watched;
	watched = NULL;
	if (stage != IN_TIME)
		end_overrun(state, limit);
	stage = limit->outer_stage;
	deadline = limit->outer_deadline;
	watched = limit->outer;
	if (watched)
		keep_time(0.001);
}

bool limit_is_over(void)
{
	return stage == STOPPING;
}

void limit_check(lua_State *L)
{
	if (limit_is_over())
		stop(L);
}
