#include "cache/census.h"

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(census_type, "census");

enum { SYNCED, OBJECTS, BYTES, RELISTS, RESTARTS, EVENT_AGE, BOOKMARK_AGE, FAMILIES };

#define LABELS "informer", "api_version", "kind"

static const struct metric_definition table[FAMILIES] = {
    [SYNCED] = {.type = METRIC_GAUGE,
		.name = "perilune_informer_synced",
		.help = "1 once the informer has listed its objects and holds them all, else 0.",
		.labels = {LABELS}},
    [OBJECTS] = {.type = METRIC_GAUGE,
		 .name = "perilune_informer_objects",
		 .help = "Objects in the informer's cache.",
		 .labels = {LABELS}},
    [BYTES] = {.type = METRIC_GAUGE,
	       .name = "perilune_informer_bytes",
	       .help = "Bytes of JSON in the informer's cache.",
	       .labels = {LABELS}},
    [RELISTS] = {.type = METRIC_COUNTER,
		 .name = "perilune_informer_relists_total",
		 .help = "Times that the informer asked for all its objects again, by why.",
		 .labels = {LABELS, "cause"}},
    [RESTARTS] = {.type = METRIC_COUNTER,
		  .name = "perilune_informer_watch_restarts_total",
		  .help = "Watches that went on where the one before had ended, by why it had.",
		  .labels = {LABELS, "cause"}},
    [EVENT_AGE] = {.type = METRIC_GAUGE,
		   .name = "perilune_informer_last_event_age_seconds",
		   .help = "Seconds since a list or an event came; absent before the first.",
		   .labels = {LABELS}},
    [BOOKMARK_AGE] = {.type = METRIC_GAUGE,
		      .name = "perilune_informer_last_bookmark_age_seconds",
		      .help = "Seconds since a bookmark came; absent before the first.",
		      .labels = {LABELS}},
};

struct census {
	struct pool *pool;
	struct metric_collector collector;
	struct metric_family *families[FAMILIES];
};

static void collect_causes(struct metric_family *family, const char *const labels[3], const unsigned long *counts)
{
	for (int cause = 0; cause < REFLECTOR_CAUSES; cause++) {
		const char *const values[] = {labels[0], labels[1], labels[2], reflector_cause_name(cause)};
		metric_collect(family, values, (double)counts[cause]);
	}
}

static void collect_age(struct metric_family *family, const char *const labels[3], double at)
{
	if (at > 0)
		metric_collect(family, labels, clock_now() - at);
}

static void collect_informer(void *data, struct informer *informer)
{
	const struct census *census = data;
	struct informer_report report;
	informer_report(informer, &report);
	const char *const labels[] = {report.label, report.api_version, report.kind};
	metric_collect(census->families[SYNCED], labels, report.synced);
	metric_collect(census->families[OBJECTS], labels, (double)report.objects);
	metric_collect(census->families[BYTES], labels, (double)report.bytes);
	collect_causes(census->families[RELISTS], labels, report.counts.relists);
	collect_causes(census->families[RESTARTS], labels, report.counts.restarts);
	collect_age(census->families[EVENT_AGE], labels, report.counts.last_event_at);
	collect_age(census->families[BOOKMARK_AGE], labels, report.counts.last_bookmark_at);
}

static void collect(void *data)
{
	struct census *census = data;
	pool_each(census->pool, collect_informer, census);
}

struct census *census_new(struct metric_registry *registry, struct pool *pool)
{
	struct census *census = alloc_object(&census_type, sizeof(*census));
	census->pool = pool;
	census->collector.collect = collect;
	census->collector.data = census;
	metric_define(registry, table, FAMILIES, census->families);
	metric_collector_add(registry, &census->collector);
	return census;
}

void census_free(struct census *census)
{
	metric_collector_remove(&census->collector);
	alloc_object_free(&census_type, census);
}
