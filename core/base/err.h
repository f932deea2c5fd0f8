/* err: why something did not happen. A value: no allocation, copied by assignment, filled by the callee on -1 or NULL.
 *
 * `reason` is one word from the table in the API contract: the server's (NotFound, Conflict, Forbidden …) or this
 * side's (NoKind, Timeout, Connection, TooLarge, NotLeader), or "" where the failure is no API answer (a file, an
 * argument). */
#ifndef PERILUNE_BASE_ERR_H
#define PERILUNE_BASE_ERR_H

#include <stdbool.h>

struct err {
	int code;             /* HTTP status; 0 when no server said it */
	double retry_after;   /* seconds the server asked to wait; negative when it did not */
	bool retryable;       /* the same call may succeed later */
	bool outcome_unknown; /* a write that may have happened */
	char reason[40];
	char message[1024]; /* one line, no secret */
};

void err_clear(struct err *err);

/* Sets reason and message (cut to fit, control characters made spaces), the rest as err_clear. Returns -1, so that a
 * function can end in `return err_set(...)`. err may be NULL. */
int err_set(struct err *err, const char *reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. Returns -1. err may be NULL. */
int err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
