/* backoff: how long to wait after a failure, and whether to say so.
 *
 * 800 ms, doubling to 30 s, each wait longer by a random part of itself; from the start again after 2 minutes without a
 * failure. The log hears of the first failure and then of those at doubling distances, 10 s to 5 min. One for each
 * thing that is tried, never shared. */
#ifndef PERILUNE_BASE_BACKOFF_H
#define PERILUNE_BASE_BACKOFF_H

#include <stdbool.h>

struct backoff {
	double base;     /* the next wait without its random part; 0 at the start */
	double quiet_at; /* when the last wait ends; clock_now's scale */
	double log_gap;  /* 0 at the start */
	double log_at;   /* no line before it */
};

double backoff_next(struct backoff *backoff); /* seconds to wait now, after a failure */
/* A wait that someone else chose: it counts as a failure for the reset and for the log alone. */
void backoff_told(struct backoff *backoff, double seconds);
bool backoff_speaks(struct backoff *backoff); /* call once a failure, after one of the above: whether to log it */

double backoff_random(void); /* [0, 1), of this thread; for all that is not to happen in step */

#endif
