#include "state.h"

#include "fuzz.h"

/* Of the leak checker, where there is one. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* A library's buffer is known to Lua's own memory alone, into which the leak checker does not look. */
struct state *fuzz_state(const struct state_options *options)
{
	static struct state *state;
	struct err err;
	if (state)
		return state;
	if (__lsan_disable)
		__lsan_disable();
	state = state_new(options, &err);
	if (__lsan_enable)
		__lsan_enable();
	FUZZ_CHECK(state);
	return state;
}
