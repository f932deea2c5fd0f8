#include "net/bell.h"

#include <ev.h>

#include "base/alloc.h"
#include "net/loop_ev.h"

ALLOC_TYPE(bell_type, "bell");

struct bell {
	ev_async async;
	struct loop *loop;
	struct loop_job *job;
};

static void on_ring(struct ev_loop *ev, ev_async *watcher, int events)
{
	(void)ev, (void)events;
	struct bell *bell = watcher->data;
	loop_post(bell->loop, bell->job);
}

struct bell *bell_new(struct loop *loop, struct loop_job *job)
{
	struct bell *bell = alloc_object(&bell_type, sizeof(*bell));
	bell->loop = loop;
	bell->job = job;
	ev_async_init(&bell->async, on_ring);
	bell->async.data = bell;
	ev_async_start(loop_ev(loop), &bell->async);
	return bell;
}

void bell_free(struct bell *bell)
{
	if (bell)
		ev_async_stop(loop_ev(bell->loop), &bell->async);
	alloc_object_free(&bell_type, bell);
}

void bell_ring(struct bell *bell)
{
	ev_async_send(loop_ev(bell->loop), &bell->async);
}
