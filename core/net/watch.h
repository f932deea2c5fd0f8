/* watch: tells that something at one of some paths may have changed.
 *
 * A path is a file or a folder, and need not be there. What counts: whatever happens in a folder that is a path, in the
 * folder of a path that is none, and in WATCH_FOLDERS folders below each, the nearest ones, links followed; and what
 * takes another place on the way to a path, be it a folder or a link. So it sees files that are written in place or
 * by rename, new and removed ones, folders that go and come back, and links that are swapped, as in a ConfigMap mount.
 * In a folder, files of one ending count, and what may be a folder or a link to one; names with a dot at their head
 * don't, but those with two do. It may be a false alarm: whoever is told looks for himself.
 *
 * A burst is told once: when nothing has happened for WATCH_QUIET, and WATCH_LONGEST after its begin at the latest.
 *
 * Not seen: what another machine does in a network file system, and what happens to a file behind a link in another
 * folder. */
#ifndef PERILUNE_NET_WATCH_H
#define PERILUNE_NET_WATCH_H

#include "net/loop.h"

#define WATCH_QUIET 0.2 /* seconds */
#define WATCH_LONGEST 2.0
#define WATCH_FOLDERS 100

struct watch;

/* ending: borrowed for its life. on_change is called from the loop. NULL with err, when the system gives no more of
 * what it takes. */
struct watch *watch_new(struct loop *loop, const char *ending, loop_fn on_change, void *data, struct err *err);
void watch_free(struct watch *watch); /* NULL is harmless */

/* Copied; a relative one is taken from the folder that is the working folder now. What happens from here on is told. */
void watch_add(struct watch *watch, const char *path);

#endif
