#include "base/backoff.h"

#include <math.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/clock.h"

#define FIRST 0.8
#define LONGEST 30.0
#define FACTOR 2.0
#define CALM 120.0

#define FIRST_GAP 10.0
#define LONGEST_GAP 300.0

/* Splitmix64: spreads retries, time-outs and samples; nothing secret hangs on it. */
double backoff_random(void)
{
	static _Thread_local uint64_t state;
	if (!state && getrandom(&state, sizeof(state), 0) != (ssize_t)sizeof(state))
		state = (uint64_t)(clock_wall() * 1e9);
	uint64_t z = (state += 0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void forget_after_calm(struct backoff *backoff)
{
	if (clock_now() - backoff->quiet_at > CALM)
		*backoff = (struct backoff){0};
}

double backoff_next(struct backoff *backoff)
{
	forget_after_calm(backoff);
	double base = backoff->base > 0 ? backoff->base : FIRST;
	backoff->base = fmin(base * FACTOR, LONGEST);
	double wait = base * (1 + backoff_random());
	backoff->quiet_at = clock_now() + wait;
	return wait;
}

void backoff_told(struct backoff *backoff, double seconds)
{
	forget_after_calm(backoff);
	backoff->quiet_at = clock_now() + seconds;
}

bool backoff_speaks(struct backoff *backoff)
{
	double now = clock_now();
	if (backoff->log_gap > 0 && now < backoff->log_at)
		return false;
	backoff->log_gap = backoff->log_gap > 0 ? fmin(backoff->log_gap * 2, LONGEST_GAP) : FIRST_GAP;
	backoff->log_at = now + backoff->log_gap;
	return true;
}
