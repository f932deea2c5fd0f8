/* clock: the time, replaceable, so that specs move it. Seconds as doubles. */
#ifndef PERILUNE_BASE_CLOCK_H
#define PERILUNE_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

double clock_now(void);  /* monotonic, from an unnamed start */
double clock_wall(void); /* since 1970-01-01 UTC; for people and token expiry only */

/* RFC 3339 in UTC with milliseconds ("2030-01-02T03:04:05.678Z"); out holds at least 32 bytes. Returns out. */
char *clock_format(double wall, char *out, size_t size);
/* The same with microseconds, as Kubernetes' MicroTime wants it. */
char *clock_format_micro(double wall, char *out, size_t size);

/* The wall time of an RFC 3339 text, with or without a fraction, in UTC or with an offset; NaN when malformed. */
double clock_parse(const char *text);

typedef double (*clock_fn)(void *data);
void clock_replace(clock_fn now, clock_fn wall, void *data); /* NULL restores the system's */

/* A time that stands still. From clock_stop on both clocks show that moment, and clock_set alone moves them; now does
 * not go back. After clock_go, clock_now runs on from where it stood, and the wall is the system's again. */
void clock_stop(void);
void clock_set(double now);
void clock_go(void);
bool clock_is_stopped(void);

double clock_real(void); /* the system's monotonic clock, whatever was replaced or stopped; works in signal handlers */

/* Seconds from "30s", "2m", "1h30m", "500ms", "1.5s" or "0" (Go's duration syntax without ns and us); negative when
 * malformed. */
double clock_duration(const char *text);

#endif
