/* metric: counters, gauges and histograms with labels, and the page of them in Prometheus's text format 0.0.4.
 *
 * A family is a name, its type and its labels; a series is one set of the labels' values with its number. Whoever
 * counts holds its series and adds to it: no look-up, no allocation, no lock, so all of it belongs to the loop's
 * thread. What can be worked out when the page is asked for is collected then. A page has each series once: two that
 * are given the same values are one, and add up. */
#ifndef PERILUNE_BASE_METRIC_H
#define PERILUNE_BASE_METRIC_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

struct metric_registry;
struct metric_family;
struct metric_series;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS 8 /* most labels of a family */

struct metric_definition {
	enum metric_type type;
	const char *name;
	const char *help;
	const char *labels[METRIC_LABELS + 1]; /* names, ended by NULL */
	const double *bounds;                  /* a histogram's: rising, without +Inf */
	size_t bound_count;
	size_t limit; /* most series; 0: no limit */
};

struct metric_registry *metric_registry_new(void);
void metric_registry_free(struct metric_registry *registry); /* and all in it: no series may be held any more */

/* The family of that name, made on the first call; the definition is copied. NULL with err: a malformed name or label,
 * bounds that don't rise, or a name that stands for something else already. */
struct metric_family *metric_family(struct metric_registry *registry, const struct metric_definition *definition,
				    struct err *err);
/* For families that don't stay: one that has been counted goes when its count falls to 0. No series of it is held then.
 */
void metric_family_ref(struct metric_family *family);
void metric_family_unref(struct metric_family *family);
/* A table of the program's own families: out gets one for each row. That one cannot be made is a fault of the program
 * and ends it; so scripts must not be let near the names in its tables. */
void metric_define(struct metric_registry *registry, const struct metric_definition *table, size_t count,
		   struct metric_family **out);

/* A series by its values, one for each label of the family in their order; made when it is not there. Values may hold
 * anything: what is no UTF-8 becomes U+FFFD, and beyond 512 bytes they are cut. Beyond the family's limit the series
 * that is returned is on no page; the log says so once a family. */
struct metric_series *metric_hold(struct metric_family *family, const char *const *values); /* counted */
void metric_release(struct metric_series *series); /* the last one removes it */
/* Borrowed; stays for the registry's life. For a small and closed set of values. */
struct metric_series *metric_keep(struct metric_family *family, const char *const *values);

void metric_add(struct metric_series *series, double amount);    /* a counter's amount is not negative */
void metric_set(struct metric_series *series, double value);     /* gauges */
void metric_observe(struct metric_series *series, double value); /* histograms */

/* Called for each page, before it is written, to give it what nobody counts. Embedded; removed before it is freed. */
struct metric_collector {
	struct list node;
	void (*collect)(void *data);
	void *data;
};
void metric_collector_add(struct metric_registry *registry, struct metric_collector *collector);
void metric_collector_remove(struct metric_collector *collector);
/* From within a collector: a counter's or gauge's number on this page alone. */
void metric_collect(struct metric_family *family, const char *const *values, double value);

/* Appends the page: families by name, series by labels. */
void metric_write(struct metric_registry *registry, struct buf *out);

#endif
