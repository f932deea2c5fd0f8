/* tally: the metrics of a host's scripts and of their handlers. What happens at events is counted as it happens, on
 * series that the handler holds; the rest is worked out when the page is asked for. */
#ifndef PERILUNE_SCRIPT_TALLY_H
#define PERILUNE_SCRIPT_TALLY_H

#include "base/metric.h"

struct host;
struct tally;

/* Collects for the registry until it is freed. Both outlive it. */
struct tally *tally_new(struct metric_registry *registry, struct host *host);
void tally_free(struct tally *tally);

/* One handler's part. */
struct tally_handler {
	struct metric_series *events[3]; /* by enum notification_type; NULL where it has no function */
	struct metric_series *errors, *duration;
};

/* The texts are the labels' values: the script's name, the informer's label, the handler's file:line. */
void tally_handler_init(struct tally_handler *handler, struct tally *tally, const char *const texts[3],
			const bool has_function[3]);
void tally_handler_fini(struct tally_handler *handler);
/* One call of it has ended. type: enum notification_type. */
void tally_handler_called(struct tally_handler *handler, int type, double seconds, bool failed);

#endif
