/* reload: new generations of a host's scripts, while it runs.
 *
 * A generation is one load of one script. The new one is loaded aside; it waits until its informers have synced, and
 * those that the old one has as well go on untouched. Then the old one is closed: what waits for its handlers is told,
 * for RELOAD_DRAIN seconds at most, and in a quiet moment the new one takes its place: the host's list, k8s.state, the
 * keys of the controllers that both have. What runs in the old one may end, within RELOAD_END seconds. A generation
 * that does not load, or whose informers don't sync in time, is dropped, and the old one goes on as if nothing had
 * been.
 *
 * A script whose file is gone from a folder ends, one that is new there begins. */
#ifndef PERILUNE_SCRIPT_RELOAD_H
#define PERILUNE_SCRIPT_RELOAD_H

#include "script/host.h"

#define RELOAD_DRAIN 10.0
#define RELOAD_END 30.0

struct reload;
struct reconciler;
struct script;
struct reload *reload_new(struct host *host);
void reload_free(struct reload *reload); /* frees what it has in hand; nobody is told */

/* Loads the scripts at a path for the first time, and looks there again at each reload. As host_load. */
int reload_add_path(struct reload *reload, const char *path, struct err *err);

/* The scripts at the paths anew: all where it is forced, else those whose files have changed. Before the host's barrier
 * has opened it waits for that. One that is asked for while scripts give up their places comes after that; new code
 * that waits for its caches waits on, unless its files have changed again: then it gives way. on_done may be NULL. */
void reload_start(struct reload *reload, bool forced, host_reload_fn on_done, void *data);

/* A call has ended, an event was dealt with, or the host has opened. */
void reload_settled(struct reload *reload);
/* No generation comes any more; those that are on their way are dropped. */
void reload_stop(struct reload *reload);

/* Those that have lost their place and still end. */
void reload_each_old(struct reload *reload, void (*fn)(struct script *script));
bool reload_is_idle(const struct reload *reload); /* no call of those is under way */
/* A controller of theirs, of the latest that has one of this name; NULL for none. */
struct reconciler *reload_find_old(const struct reload *reload, const char *name);
struct reconciler *reload_find_next(const struct reload *reload, const char *name); /* of those that wait */

#endif
