#include "work/ratelimit.h"

#include <math.h>

#include "base/clock.h"

void ratelimit_init(struct ratelimit *limit, double base, double max, double qps, unsigned burst)
{
	double full = burst ? burst : 1;
	*limit = (struct ratelimit){base, max, qps, full, full, clock_now()};
}

/* A token that is not there yet is promised, so that those who ask next wait behind it. */
static double take_token(struct ratelimit *limit)
{
	double now = clock_now();
	limit->tokens = fmin(limit->tokens + (now - limit->filled_at) * limit->qps, limit->burst) - 1;
	limit->filled_at = now;
	return limit->tokens < 0 ? -limit->tokens / limit->qps : 0;
}

double ratelimit_next(struct ratelimit *limit, unsigned failures)
{
	double own = fmin(limit->base * exp2(failures), limit->max);
	return limit->qps > 0 ? fmax(own, take_token(limit)) : own;
}
