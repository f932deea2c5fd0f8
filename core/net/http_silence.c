/* Connections on which nothing comes any more, though TCP still believes in them: the peer's machine is gone behind a
 * proxy or load balancer that acknowledges for it. libcurl 7.88.1 has no means of its own: its upkeep sends no HTTP/2
 * pings for a multi, and what is started anew would land on the same dead connection (both measured). */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "net/http_private.h"

#define DEAD 30.0 /* seconds of silence after which the others on a connection are given up too */
/* After so many nothing new is begun on it. Short, since calls with short deadlines would otherwise meet in it for
 * ever, and a needless connection costs little. */
#define AVOID 1.0

double http_silence(const struct http *http)
{
	return clock_now() - http->last_byte_at;
}

static bool shares(const struct http *http, const struct http *other)
{
	return other != http && !other->ended && http_same_connection(&http->attempt, &other->attempt);
}

/* Of all requests that are on it now. One that has had nothing yet says nothing about it. */
static double connection_silence(const struct http *http)
{
	double silence = http_silence(http);
	LIST_EACH (mux_siblings(&http->transfer), node) {
		const struct http *other = LIST_ENTRY(node, struct http, transfer.node);
		if (shares(http, other) && other->head_begun)
			silence = fmin(silence, http_silence(other));
	}
	return silence;
}

static void give_up(struct http *http, double silence)
{
	http->failure = HTTP_BROKEN;
	http->ended = true;
	snprintf(http->message, sizeof(http->message), "nothing came on the connection for %.0f s", silence);
	loop_post(mux_loop(http->mux), &http->job);
}

static bool is_silent(const struct http *http, double seconds)
{
	return http->transfer.pool && http->attempt.connected && connection_silence(http) >= seconds;
}

void http_suspect(struct http *http)
{
	if (!is_silent(http, DEAD))
		return;
	double silence = connection_silence(http);
	LIST_EACH (mux_siblings(&http->transfer), node) {
		struct http *other = LIST_ENTRY(node, struct http, transfer.node);
		if (shares(http, other))
			give_up(other, silence);
	}
	mux_retire_for(&http->transfer);
}

void http_avoid_silent(struct http *http)
{
	if (is_silent(http, AVOID))
		mux_retire_for(&http->transfer);
}
