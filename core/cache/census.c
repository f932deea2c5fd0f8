#include "cache/census.h"

#include "base/alloc.h"

ALLOC_TYPE(census_type, "census");

enum { SYNCED, OBJECTS, BYTES, FAMILIES };

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
};

struct census {
	struct pool *pool;
	struct metric_collector collector;
	struct metric_family *families[FAMILIES];
};

static void collect_informer(void *data, struct informer *informer)
{
	const struct census *census = data;
	struct informer_report report;
	informer_report(informer, &report);
	const char *const labels[] = {report.label, report.api_version, report.kind};
	metric_collect(census->families[SYNCED], labels, report.synced);
	metric_collect(census->families[OBJECTS], labels, (double)report.objects);
	metric_collect(census->families[BYTES], labels, (double)report.bytes);
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
