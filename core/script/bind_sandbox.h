/* bind_sandbox: what the sandbox's Lua state sees of the host: the answers that it gives, the time, files. */
#ifndef PERILUNE_SCRIPT_BIND_SANDBOX_H
#define PERILUNE_SCRIPT_BIND_SANDBOX_H

#include <lua.h>

#include "net/exchange.h"

/* What time the sandbox's clock asks to be called at. */
struct bind_alarm {
	struct loop *loop;
	struct loop_timer timer;
};

/* Pushes the table `io`: now, wall, alarm, log, files. alarm is borrowed for the state's life. */
void bind_sandbox_push_io(lua_State *L, struct bind_alarm *alarm);

/* Pushes a request as Lua takes it, six values: method, path, query, headers, body (nil when it was too large) and the
 * answer, a userdata which is dead after bind_sandbox_forget. */
int bind_sandbox_push_request(lua_State *L, struct exchange_request *request);
void bind_sandbox_forget(struct exchange_request *request);

#endif
