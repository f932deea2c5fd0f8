/* Answers that don't come. What is waited for has a longest silence, after which its connection is suspected (so that
 * others on it are freed too, and nothing new lands there) and the reflector moves on. TCP keepalive and
 * TCP_USER_TIMEOUT catch a peer that is gone; this is for one whose connection something else keeps alive. */
#include <math.h>

#include "base/clock.h"
#include "cache/reflector_private.h"

/* An API server ends a call that is no watch after 60 s (--request-timeout), so a LIST may be that late. */
#define LONGEST_LIST 90.0
/* A stream is answered before there is anything to send. */
#define LONGEST_START 60.0
/* Between two objects of an initial state. */
#define LONGEST_INITIAL 60.0
/* API servers send a bookmark about once a minute for kinds that have a watch cache. A stream on which two have come is
 * one of those, and goes on having them. For others only the end of the stream is due. */
#define LONGEST_WATCH 90.0
#define ENOUGH_BOOKMARKS 2

/* When the present wait is over, on clock_now's scale; INFINITY while nothing is due. */
static double due_at(const struct reflector *reflector)
{
	const struct watching *watch = &reflector->watch;
	double last = clock_now() - (reflector->request ? request_silence(reflector->request) : 0);
	switch (reflector->state) {
	case REFLECTOR_CONNECTING:
		return last + (watch->initial ? LONGEST_START : LONGEST_LIST);
	case REFLECTOR_LISTING:
		return last + LONGEST_LIST;
	case REFLECTOR_RECEIVING:
		return watch->initial_at + LONGEST_INITIAL;
	case REFLECTOR_WATCHING:
		if (!watch->opened)
			return last + LONGEST_START;
		return watch->bookmarks >= ENOUGH_BOOKMARKS ? last + LONGEST_WATCH : INFINITY;
	case REFLECTOR_WAITING: /* as the server asked: the request is sent again by itself */
		return reflector->request ? last + LONGEST_LIST : INFINITY;
	default:
		return INFINITY;
	}
}

static enum move choose_move(const struct watching *watch)
{
	if (!watch->frame || watch->initial)
		return MOVE_LIST_LATER;
	return watch->opened ? MOVE_WATCH : MOVE_WATCH_LATER;
}

static void give_up(struct reflector *reflector)
{
	double silence = request_silence(reflector->request);
	struct err err;
	err_set(&err, "Timeout", "nothing came from %s for %.0f s", reflector->options.cluster->config->server,
		silence);
	request_suspect(reflector->request);
	reflector->cut_off = true;
	if (reflector->state == REFLECTOR_RECEIVING)
		reflector_initial_give_up(reflector, &err);
	else
		reflector_move(reflector, choose_move(&reflector->watch), &err);
}

/* Bytes that come don't move the timer: it looks, once it is over, when the last of them was. */
static void on_guard(void *data)
{
	struct reflector *reflector = data;
	double left = due_at(reflector) - clock_now();
	if (left > 0)
		reflector_guard(reflector);
	else
		give_up(reflector);
}

void reflector_guard_init(struct reflector *reflector)
{
	loop_timer_init(&reflector->guard, on_guard, reflector);
}

void reflector_guard(struct reflector *reflector)
{
	double left = due_at(reflector) - clock_now();
	if (isfinite(left))
		loop_timer_start(reflector->loop, &reflector->guard, fmax(left, 0));
	else
		loop_timer_stop(reflector->loop, &reflector->guard);
}
