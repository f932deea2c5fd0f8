/* meter: what is counted of the requests to one API server, under client-go's names: rest_client_*. */
#ifndef PERILUNE_KUBE_METER_H
#define PERILUNE_KUBE_METER_H

#include "base/metric.h"

struct meter;

/* server: its URL, for the label host. The registry outlives the meter. */
struct meter *meter_new(struct metric_registry *registry, const char *server);
void meter_free(struct meter *meter); /* NULL is harmless here and below: nothing is counted */

/* One try has been answered; status 0: it has not, and will not be. */
void meter_answer(struct meter *meter, const char *method, int status);
/* The same request goes out once more because of that answer. */
void meter_retry(struct meter *meter, const char *method, int status);
/* From its start to the end of its last answer, waits included. */
void meter_done(struct meter *meter, const char *method, double seconds);

#endif
