#include "script/collector.h"

#include "script/call.h"

/* Lua's own collector begins a cycle at twice the memory that the one before has left. This one is a little earlier. */
#define BEGIN(left) ((left) + (left) / 4 * 3)
/* KiB of lua_gc's steps: some 50 us, for which an event that comes just then has to wait. More where a table has a
 * million entries, which LuaJIT marks as one piece, and up to the rest of the cycle where a call has just taken
 * megabytes at once: LuaJIT counts those as debt, which lua_gc pays off whole. To pay it in small pieces took three
 * times the CPU time, since nothing tells when the cycle has ended. */
#define STEP 16

/* A cycle that had begun within a call leaves what became garbage since: then there is another. */
static bool is_done(struct collector *collector, const struct state *state)
{
	collector->again = !collector->again && state->memory >= collector->from;
	return !collector->again;
}

static void run(void *data)
{
	struct state *state = data;
	struct collector *collector = &state->collector;
	if (call_collect(state, STEP) && is_done(collector, state))
		collector->from = BEGIN(state->memory);
	else
		loop_post_last(collector->loop, &collector->job);
}

void collector_init(struct collector *collector, struct state *state, struct loop *loop)
{
	collector->loop = loop;
	loop_job_init(&collector->job, run, state);
}

void collector_fini(struct collector *collector)
{
	loop_job_cancel(&collector->job);
}

void collector_look(struct collector *collector, size_t memory)
{
	if (!collector->loop)
		return;
	if (collector->from > BEGIN(memory)) /* Lua's own has collected */
		collector->from = BEGIN(memory);
	if (memory >= collector->from)
		loop_post_last(collector->loop, &collector->job);
}
