#include "script/limit.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.36 has the field only under this name. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Written by the loop's thread and read by its signal handler. */
static struct state *volatile watched;
static volatile double deadline;
static volatile sig_atomic_t ticking, armed;
static timer_t timer;

/* The clock that specs replace does not move a real stall, so this reads the system's. */
static double monotonic(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void set_timer(double seconds)
{
	time_t whole = (time_t)seconds;
	struct itimerspec spec = {.it_value = {whole, (long)((seconds - (double)whole) * 1e9) + 1}};
	ticking = 1;
	timer_settime(timer, 0, &spec, NULL);
}

/* The script's own line, not that of a function of ours that it called. */
static void note_place(lua_State *L, struct state *state)
{
	lua_Debug record;
	strcpy(state->killed_at, "?");
	for (int level = 0; lua_getstack(L, level, &record); level++) {
		lua_getinfo(L, "Sl", &record);
		if (record.currentline < 0 || strncmp(record.short_src, "perilune.", 9) == 0)
			continue;
		snprintf(state->killed_at, sizeof(state->killed_at), "%s:%d", record.short_src, record.currentline);
		return;
	}
}

static void kill_hook(lua_State *L, lua_Debug *record)
{
	(void)record;
	struct state *state = state_of(L);
	if (!state->killed)
		note_place(L, state);
	state->killed = KILL_TIME;
	lua_pushliteral(L, "stopped: ran too long without yielding");
	lua_error(L);
}

static void on_alarm(int signo)
{
	(void)signo;
	ticking = 0;
	struct state *state = watched;
	if (!state || deadline == 0)
		return;
	double left = deadline - monotonic();
	if (left > 0) {
		set_timer(left);
		return;
	}
	armed = 1;
	lua_sethook(state->L, kill_hook, LUA_MASKCOUNT, 1);
}

static void make_timer(void)
{
	static bool made;
	if (made)
		return;
	made = true;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
}

void limit_enter(struct limit *limit, struct state *state)
{
	make_timer();
	limit->outer = watched;
	limit->outer_deadline = deadline;
	deadline = state->time_limit > 0 ? monotonic() + state->time_limit : 0;
	watched = state;
	if (deadline > 0 && !ticking)
		set_timer(state->time_limit);
}

void limit_leave(const struct limit *limit)
{
	struct state *state = watched;
	watched = NULL; /* the handler touches nothing from here on */
	if (armed)
		lua_sethook(state->L, NULL, 0, 0);
	armed = 0;
	deadline = limit->outer_deadline;
	watched = limit->outer;
	if (watched && deadline > 0 && !ticking)
		set_timer(0.001);
}
