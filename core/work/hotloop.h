/* hotloop: notices a key that its controller's own writes bring back, again and again.
 *
 * In: the versions that a key's reconciles wrote, and the events that bring keys back. Out: how long such an event has
 * to wait. More than HOTLOOP_MOST returns in HOTLOOP_WINDOW seconds make a key hot; it is said once, and from then on
 * each return waits longer, until none has come for HOTLOOP_QUIET seconds. */
#ifndef PERILUNE_WORK_HOTLOOP_H
#define PERILUNE_WORK_HOTLOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strmap.h"
#include "cache/object.h"
#include "net/loop.h"

#define HOTLOOP_MOST 20
#define HOTLOOP_WINDOW 10.0
#define HOTLOOP_QUIET 60.0
#define HOTLOOP_WRITES 128 /* remembered of a controller; the event of an older one is taken for somebody else's */

struct hotloop {
	struct loop *loop;
	struct loop_timer sweep;
	struct strmap keys;  /* to struct hot: those that came back lately */
	struct list returns; /* the same, the one that has been quiet longest first */
	struct {
		uint64_t key; /* its hash */
		char version[OBJECT_VERSION_MAX + 1];
	} writes[HOTLOOP_WRITES]; /* a ring */
	size_t wrote;             /* so many since the start */
};

void hotloop_init(struct hotloop *hotloop, struct loop *loop);
void hotloop_fini(struct hotloop *hotloop);

/* A reconcile of the key has written an object, which has this resourceVersion since. */
void hotloop_wrote(struct hotloop *hotloop, const char *key, size_t length, const char *version);

struct hotloop_verdict {
	bool own;     /* the event is of one of the key's own writes */
	bool news;    /* the key is hot since this one */
	double delay; /* seconds that the key waits before it is worked on; 0 */
};
/* An event of an object with this version brings the key back. */
struct hotloop_verdict hotloop_returned(struct hotloop *hotloop, const char *key, size_t length, const char *version);

#endif
