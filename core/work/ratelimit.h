/* ratelimit: how long a key that has failed waits before it is tried again.
 *
 * base seconds after its first failure, twice as long after each further one, max at most. With a bucket, the retries
 * of all keys together are qps a second in the long run and burst of them at once; a retry waits for both. */
#ifndef PERILUNE_WORK_RATELIMIT_H
#define PERILUNE_WORK_RATELIMIT_H

struct ratelimit {
	double base, max;
	double qps; /* 0: no bucket */
	double burst;
	double tokens; /* at filled_at; below 0: what was promised already */
	double filled_at;
};

void ratelimit_init(struct ratelimit *limit, double base, double max, double qps, unsigned burst);

/* Seconds to wait for a key that has failed so often before the present failure. Takes a token. */
double ratelimit_next(struct ratelimit *limit, unsigned failures);

#endif
