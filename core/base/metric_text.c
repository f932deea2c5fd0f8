/* The page: Prometheus's text format 0.0.4. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_private.h"

#define EXACT 9007199254740992.0 /* doubles hold each integer up to it */

static void append_integer(struct buf *out, int64_t value)
{
	char text[24], *at = text + sizeof(text);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	do {
		*--at = (char)('0' + rest % 10);
	} while (rest /= 10);
	if (value < 0)
		*--at = '-';
	buf_append(out, at, (size_t)(text + sizeof(text) - at));
}

void metric_append_number(struct buf *out, double value)
{
	char text[40];
	if (value == floor(value) && fabs(value) <= EXACT) {
		append_integer(out, (int64_t)value);
		return;
	}
	if (!isfinite(value)) {
		buf_append_text(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof(text), "%.17g", value);
	buf_append_text(out, text);
}

static void append_head(struct buf *out, const struct metric_family *family)
{
	buf_append_format(out, "# HELP %s %s", family->name, family->help);
	buf_append_format(out, "# TYPE %s %s\n", family->name, metric_type_names[family->type]);
}

/* All of a line but its number. bound: the bucket's, as text; NULL for none. */
static void append_start(struct buf *out, const struct metric_series *series, const char *suffix, const char *bound)
{
	buf_append_text(out, series->family->name);
	buf_append_text(out, suffix);
	if (*series->labels || bound)
		buf_append_char(out, '{');
	buf_append_text(out, series->labels);
	if (bound) {
		buf_append_text(out, *series->labels ? ",le=\"" : "le=\"");
		buf_append_text(out, bound);
		buf_append_char(out, '"');
	}
	if (*series->labels || bound)
		buf_append_char(out, '}');
	buf_append_char(out, ' ');
}

static void append_plain(struct buf *out, const struct metric_series *series, const char *suffix)
{
	append_start(out, series, suffix, NULL);
	metric_append_number(out, series->value);
	buf_append_char(out, '\n');
}

static void append_count(struct buf *out, const struct metric_series *series, const char *suffix, const char *bound,
			 uint64_t count)
{
	append_start(out, series, suffix, bound);
	append_integer(out, (int64_t)count);
	buf_append_char(out, '\n');
}

static void append_histogram(struct buf *out, const struct metric_series *series)
{
	const struct metric_family *family = series->family;
	uint64_t count = 0;
	for (size_t i = 0; i < family->bound_count; i++)
		append_count(out, series, "_bucket", family->bound_texts[i], count += series->counts[i]);
	count += series->counts[family->bound_count];
	append_count(out, series, "_bucket", "+Inf", count);
	append_plain(out, series, "_sum");
	append_count(out, series, "_count", NULL, count);
}

static void append_family(struct buf *out, const struct metric_family *family)
{
	if (!family->count)
		return;
	append_head(out, family);
	for (size_t i = 0; i < family->count; i++) {
		if (family->type == METRIC_HISTOGRAM)
			append_histogram(out, family->series[i]);
		else
			append_plain(out, family->series[i], "");
	}
}

void metric_write(struct metric_registry *registry, struct buf *out)
{
	registry->page++;
	LIST_EACH (&registry->collectors, node) {
		const struct metric_collector *collector = LIST_ENTRY(node, struct metric_collector, node);
		collector->collect(collector->data);
	}
	metric_sweep(registry);
	for (size_t i = 0; i < registry->count; i++)
		append_family(out, registry->families[i]);
}
