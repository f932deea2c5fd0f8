#include "kube/meter.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(meter_type, "meter");

enum { REQUESTS, RETRIES, DURATION, FAMILIES };

/* Names, labels and buckets are those of component-base v0.36, metrics/prometheus/restclient. */
static const double bounds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
static const struct metric_definition table[FAMILIES] = {
    [REQUESTS] = {.type = METRIC_COUNTER,
		  .name = "rest_client_requests_total",
		  .help = "HTTP requests to the API server, by status code, method and host.",
		  .labels = {"code", "method", "host"}},
    [RETRIES] = {.type = METRIC_COUNTER,
		 .name = "rest_client_request_retries_total",
		 .help = "Requests sent once more, by the status code that led to it, verb and host.",
		 .labels = {"code", "verb", "host"}},
    [DURATION] = {.type = METRIC_HISTOGRAM,
		  .name = "rest_client_request_duration_seconds",
		  .help = "Seconds that requests took, waits included and watches left out, by verb and host.",
		  .labels = {"verb", "host"},
		  .bounds = bounds,
		  .bound_count = sizeof(bounds) / sizeof(*bounds)},
};

struct meter {
	struct metric_family *families[FAMILIES];
	char *host;
};

/* "https://10.0.0.1:6443/prefix" to "10.0.0.1:6443". It holds no password: config refuses such URLs. */
static char *host_of(const char *server)
{
	const char *start = strstr(server, "://");
	start = start ? start + 3 : server;
	return alloc_text(start, strcspn(start, "/?#"));
}

struct meter *meter_new(struct metric_registry *registry, const char *server)
{
	struct meter *meter = alloc_object(&meter_type, sizeof(*meter));
	metric_define(registry, table, FAMILIES, meter->families);
	meter->host = host_of(server);
	return meter;
}

void meter_free(struct meter *meter)
{
	if (!meter)
		return;
	alloc_free(meter->host);
	alloc_object_free(&meter_type, meter);
}

static void count(const struct meter *meter, int family, const char *method, int status)
{
	char code[16] = "<error>";
	if (status)
		snprintf(code, sizeof(code), "%d", status);
	metric_add(metric_keep(meter->families[family], (const char *const[]){code, method, meter->host}), 1);
}

void meter_answer(struct meter *meter, const char *method, int status)
{
	if (meter)
		count(meter, REQUESTS, method, status);
}

void meter_retry(struct meter *meter, const char *method, int status)
{
	if (meter)
		count(meter, RETRIES, method, status);
}

void meter_done(struct meter *meter, const char *method, double seconds)
{
	if (meter)
		metric_observe(metric_keep(meter->families[DURATION], (const char *const[]){method, meter->host}),
			       seconds);
}
