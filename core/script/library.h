/* library: what a script finds in its globals, and where `require` looks.
 *
 * Scripts: a whitelist (lua/perilune/globals.lua), strict globals, and require for perilune, cjson and the files of the
 * script's own folder. Specs: everything that LuaJIT has, plus the modules that travel inside the program. */
#ifndef PERILUNE_SCRIPT_LIBRARY_H
#define PERILUNE_SCRIPT_LIBRARY_H

#include <lua.h>
#include <stdbool.h>

#include "base/err.h"

/* Inside call_plain. */
void library_open(lua_State *L, bool full);

/* Runs a module that travels inside the program with the arguments on top of the stack, which it takes. Inside
 * call_plain. */
void library_run(lua_State *L, const char *name, int arguments);

/* Compiles text only, never bytecode; leaves the function on the stack. chunk: "@path/init.lua". -1 with err ("path:3:
 * …"). Inside call_plain. */
int library_load(lua_State *L, const char *text, size_t length, const char *chunk, struct err *err);

/* Reads a whole file of at most 4 MiB into memory owned by the caller (alloc_free). NULL with err. */
char *library_read(const char *path, size_t *length, struct err *err);

#endif
