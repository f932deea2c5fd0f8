/* call: the only entry into Lua.
 *
 * Everything that can raise (making threads, pushing arguments, decoding, tracebacks) happens inside one protected
 * call, so that running out of memory anywhere is an error, never a panic. Around it: the time limit, the full
 * collection when memory is short, and the parking of a state that does not keep within its limits. Of a parked state
 * the host can still read what it holds; who calls the script's functions looks at state->parked first. Entries nest
 * only across different states. */
#ifndef PERILUNE_SCRIPT_CALL_H
#define PERILUNE_SCRIPT_CALL_H

#include "script/state.h"

/* Runs fn(L, data) protected; what it leaves on the stack is dropped. fn takes no C resource that an error would leak.
 * 0, or -1 with err, which fn has filled where it returned non-zero: message as "file:line: what", with the calls
 * behind it after " <- ". */
typedef int (*call_fn)(lua_State *L, void *data);
int call_plain(struct state *state, call_fn fn, void *data, struct err *err);

/* A step of Lua's collector, as large as lua_gc's LUA_GCSTEP has it. Whether that was the end of a cycle. A finalizer
 * that fails is logged, and ends the step. */
bool call_collect(struct state *state, int kib);

/* Inside call_plain: runs the function and its n arguments on L's stack with a traceback on error; results (count, or
 * LUA_MULTRET) stay on the stack. 0, or -1 with the error in err: return it from fn. */
int call_function(lua_State *L, int arguments, int results, struct err *err);

/* Inside call_plain: turns the error value on top of thread's stack into err, with thread's traceback; err->reason is
 * kept from an API err. */
void call_error(lua_State *L, lua_State *thread, int status, struct err *err);

#endif
