/* audit: what can be told of scripts without running them: a Lua state with lua/perilune/audit/ and
 * lua/perilune/rbac.lua in it, which reads their files. No code of theirs runs there. */
#ifndef PERILUNE_SCRIPT_AUDIT_H
#define PERILUNE_SCRIPT_AUDIT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct audit;
struct host;

/* host: whose options say what scripts find in their globals. NULL with err. */
struct audit *audit_new(struct host *host, struct err *err);
void audit_free(struct audit *audit); /* NULL is harmless */

/* Calls a function of lua/perilune/audit/host.lua with these texts, and appends the text that it returns to out. -1
 * with err: a fault of the program's own. */
int audit_ask(struct audit *audit, const char *function, const char *const *texts, size_t count, struct buf *out,
	      struct err *err);

#endif
