/* load: from a path on the command line to the scripts that are there. */
#ifndef PERILUNE_SCRIPT_LOAD_H
#define PERILUNE_SCRIPT_LOAD_H

#include "base/err.h"

/* name: "mirror" for mirror.lua and for mirror/init.lua; path: of its main file; folder: where its modules are. All
 * borrowed. 0, or -1 with err to end the search. */
typedef int (*load_fn)(void *data, const char *name, const char *path, const char *folder, struct err *err);

/* Calls fn for each script of a path: a .lua file, a folder with init.lua, or a folder of .lua files, in the order of
 * their names. 0, or -1 with err; err->reason is "Usage" when the path is not there or holds no script. */
int load_find(const char *path, load_fn fn, void *data, struct err *err);

#endif
