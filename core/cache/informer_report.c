/* The informer's row for people: where it is, and why it is not further. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cache/informer_private.h"

static double seconds_until(double at)
{
	double left = at - clock_now();
	return left > 0 ? left : 0;
}

static void describe_look_up(const struct feed *feed, char *out, size_t size)
{
	const char *parked = feed_is_parked(feed) ? "parked: " : "";
	bool absent = !strcmp(feed->err.reason, "NoKind") || feed->err.code == 404;
	if (feed->phase == FEED_IDLE)
		snprintf(out, size, "not started");
	else if (feed->phase == FEED_LOOKING)
		snprintf(out, size, "%slooking up the kind", parked);
	else
		snprintf(out, size, "%s%s, next try in %.0f s", parked, absent ? "no such kind" : "backing off",
			 seconds_until(feed->next_try));
}

static const char *describe_wait(const struct err *err)
{
	switch (err->code) {
	case 401:
		return "unauthorized";
	case 403:
		return "forbidden";
	case 429:
		return "told to wait";
	default:
		return "backing off";
	}
}

static void describe_reflector(const struct reflector_report *report, char *out, size_t size)
{
	switch (report->state) {
	case REFLECTOR_STOPPED:
		snprintf(out, size, "no such kind");
		break;
	case REFLECTOR_CONNECTING:
		snprintf(out, size, "connecting");
		break;
	case REFLECTOR_LISTING:
		snprintf(out, size, "listing page %d", report->page);
		break;
	case REFLECTOR_RECEIVING:
		snprintf(out, size, "receiving the initial state");
		break;
	case REFLECTOR_WATCHING:
		snprintf(out, size, report->streaming ? "streaming" : "connecting the watch");
		break;
	case REFLECTOR_WAITING:
		snprintf(out, size, "%s, next try in %.0f s", describe_wait(&report->err),
			 seconds_until(report->next_try));
		break;
	}
}

/* The larger, the more an operator needs to hear of it. */
static int trouble_of(const struct scope *scope, const struct reflector_report *report)
{
	return !scope->listed * 4 + (*report->err.message != '\0') * 2 + !report->streaming;
}

/* The scope that is described; the others are only counted. */
static const struct scope *worst_scope(const struct feed *feed, struct reflector_report *out)
{
	const struct scope *worst = NULL;
	int most = -1;
	for (size_t i = 0; i < feed->scope_count; i++) {
		struct reflector_report report;
		reflector_report(feed->scopes[i].reflector, &report);
		int trouble = trouble_of(&feed->scopes[i], &report);
		if (trouble <= most)
			continue;
		most = trouble;
		worst = &feed->scopes[i];
		*out = report;
	}
	return worst;
}

static void describe_scopes(const struct feed *feed, struct informer_report *out)
{
	struct reflector_report report = {0};
	const struct scope *scope = worst_scope(feed, &report);
	bool parked = report.err.code == 403 && !feed_is_awaited(feed);
	const char *prefix = scope->stale ? "stale: " : parked ? "parked: " : "";
	char state[80], where[70] = "";
	describe_reflector(&report, state, sizeof(state));
	bool several = feed->scope_count > 1;
	if (several && !report.streaming)
		snprintf(where, sizeof(where), " (namespace %.50s)", scope->namespace);
	snprintf(out->state, sizeof(out->state), "%s%s%s", prefix, state, where);
	out->attempts = report.attempts;
	out->next_try = report.state == REFLECTOR_WAITING ? report.next_try : 0;
	out->status = report.err.code;
	memcpy(out->message, report.err.message, sizeof(out->message));
}

/* What is stored, where a relist under way has done nothing yet, and what a list that is not yet applied has brought.
 */
static void count(const struct feed *feed, struct informer_report *out)
{
	const struct replace *replace = &feed->apply.replace;
	out->counts = feed->past;
	out->objects = replace->phase ? replace->objects : store_count(feed->store);
	out->bytes = replace->phase ? replace->bytes : store_bytes(feed->store);
	for (size_t i = 0; i < feed->scope_count; i++) {
		struct reflector_report report;
		if (!feed->scopes[i].reflector)
			continue;
		reflector_report(feed->scopes[i].reflector, &report);
		reflector_counts_add(&out->counts, &report.counts);
		if (feed->scopes[i].listed)
			continue;
		out->objects += report.objects;
		out->bytes += report.bytes;
	}
}

void informer_report(const struct informer *informer, struct informer_report *out)
{
	const struct feed *feed = informer->feed;
	*out = (struct informer_report){
	    .label = informer->spec.label,
	    .api_version = informer->spec.api_version,
	    .kind = informer_kind(informer),
	    .namespace = informer->spec.namespace_text,
	    .started = informer_started(informer),
	    .synced = feed->synced,
	    .optional = !feed_is_needed(feed),
	    .attempts = feed->attempts,
	    .next_try = feed->phase == FEED_WAITING ? feed->next_try : 0,
	    .status = feed->err.code,
	    .duplicates = feed->apply.duplicates,
	    .stale = feed->apply.stale,
	};
	count(feed, out);
	if (informer->stopped) {
		snprintf(out->state, sizeof(out->state), "stopped");
	} else if (feed->phase == FEED_RUNNING) {
		describe_scopes(feed, out);
	} else {
		describe_look_up(feed, out->state, sizeof(out->state));
		snprintf(out->message, sizeof(out->message), "%s", feed->err.message);
	}
}
