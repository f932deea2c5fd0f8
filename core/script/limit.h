/* limit: stops an entry into Lua that runs too long.
 *
 * One POSIX timer for the process sends SIGALRM to the loop's thread while an entry runs; when the deadline has passed
 * the handler arms a hook on every instruction, which raises. pcall, xpcall, load and the coroutine functions
 * (lua/perilune/guard.lua) hand that on. The timer is set at most once a limit, not once an entry, and not at all while
 * nothing runs.
 *
 * An entry that can't be stopped so, as the limit is 0, or as it runs where no hook comes (a C function, compiled
 * code), is told of: to stall.h while it runs, from its limit or LIMIT_NOTICE on, and to the log. */
#ifndef PERILUNE_SCRIPT_LIMIT_H
#define PERILUNE_SCRIPT_LIMIT_H

#include "script/state.h"

#define LIMIT_NOTICE 1.0 /* seconds, where the limit is 0 */

struct limit { /* on the entry's stack: what was being watched before */
	struct state *outer;
	double outer_deadline;
	int outer_stage;
	double began; /* clock_real's scale */
};

void limit_enter(struct limit *limit, struct state *state);
/* Disarms the hook when it was armed. Before what the entry was doing, and why it was stopped, is forgotten. */
void limit_leave(const struct limit *limit);

/* Whether the present entry has passed its limit: for C functions that may run long, which no hook can enter. */
bool limit_is_over(void);

/* For such functions too: stops the script here, as the hook would, when that is so. Raises then. */
void limit_check(lua_State *L);

#endif
