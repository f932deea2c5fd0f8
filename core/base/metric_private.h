/* The inside of a registry, shared by metric.c (families and series) and metric_text.c (the page). */
#ifndef PERILUNE_BASE_METRIC_PRIVATE_H
#define PERILUNE_BASE_METRIC_PRIVATE_H

#include <stdint.h>

#include "base/metric.h"

/* It is in its family as long as somebody holds it, it is kept, or the page under way has collected it. */
struct metric_series {
	struct metric_family *family;
	char *labels; /* as on the page: a="x",b="y"; "" without labels */
	double value; /* a histogram's: the sum of what was observed */
	unsigned holders;
	bool kept;
	unsigned long page; /* the last that it was collected for; 0 for none */
	uint64_t counts[];  /* a histogram's: how many fell between two bounds; one more than there are bounds */
};

struct metric_family {
	struct metric_registry *registry;
	unsigned users; /* metric_family_ref's */
	enum metric_type type;
	char *name;
	char *help; /* as on the page, with the end of its line */
	char *labels[METRIC_LABELS];
	size_t label_count;
	double *bounds;
	char **bound_texts; /* as on the page */
	size_t bound_count;
	size_t limit;
	struct metric_series **series; /* in the order of their labels */
	size_t count, capacity;
	struct metric_series *lost; /* stands for all beyond the limit; NULL before there was one */
};

struct metric_registry {
	struct metric_family **families; /* in the order of their names */
	size_t count, capacity;
	struct list collectors;
	unsigned long page;
	struct buf scratch;
};

extern const char *const metric_type_names[]; /* by enum metric_type, as on the page */

/* The fewest digits, of 15 and 17, that read as the same number. */
void metric_append_number(struct buf *out, double value);

/* Removes what no collector has given to the page under way. */
void metric_sweep(struct metric_registry *registry);

#endif
