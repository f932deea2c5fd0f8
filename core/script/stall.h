/* stall: which script has kept the loop for longer than it may, for those that look while it still does.
 *
 * Written on the loop's thread, by its signal handler too; read on any. A long text is cut. */
#ifndef PERILUNE_SCRIPT_STALL_H
#define PERILUNE_SCRIPT_STALL_H

#include <stdbool.h>
#include <stddef.h>

/* what: "add handler"; place: "init.lua:12", or the controller's name; either may be NULL. Works in signal handlers. */
void stall_begin(const char *script, const char *what, const char *place);
void stall_seen_at(const char *line); /* "init.lua:14": where it was seen */
void stall_end(void);                 /* harmless when none has begun */

/* "script mirror, add handler at init.lua:12, seen at init.lua:14"; false, and "" in out, when there is none. */
bool stall_read(char *out, size_t size);

#endif
