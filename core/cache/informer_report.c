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

static void describe_look_up(const struct informer *informer, char *out, size_t size)
{
	if (informer->phase == INFORMER_IDLE)
		snprintf(out, size, "not started");
	else if (informer->phase == INFORMER_STOPPED)
		snprintf(out, size, "stopped");
	else if (informer->phase == INFORMER_LOOKING)
		snprintf(out, size, "looking up the kind");
	else
		snprintf(out, size, "%s, next try in %.0f s",
			 !strcmp(informer->err.reason, "NoKind") || informer->err.code == 404 ? "no such kind"
											      : "backing off",
			 seconds_until(informer->next_try));
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
static const struct scope *worst_scope(const struct informer *informer, struct reflector_report *out)
{
	const struct scope *worst = NULL;
	int most = -1;
	for (size_t i = 0; i < informer->scope_count; i++) {
		struct reflector_report report;
		reflector_report(informer->scopes[i].reflector, &report);
		int trouble = trouble_of(&informer->scopes[i], &report);
		if (trouble <= most)
			continue;
		most = trouble;
		worst = &informer->scopes[i];
		*out = report;
	}
	return worst;
}

static void describe_scopes(const struct informer *informer, struct informer_report *out)
{
	struct reflector_report report = {0};
	const struct scope *scope = worst_scope(informer, &report);
	char state[80], where[80] = "";
	describe_reflector(&report, state, sizeof(state));
	bool several = informer->scope_count > 1;
	if (several && !report.streaming)
		snprintf(where, sizeof(where), " (namespace %.60s)", scope->namespace);
	snprintf(out->state, sizeof(out->state), "%s%s", state, where);
	out->attempts = report.attempts;
	out->next_try = report.state == REFLECTOR_WAITING ? report.next_try : 0;
	out->status = report.err.code;
	memcpy(out->message, report.err.message, sizeof(out->message));
}

/* What is stored, and what a list that is not yet applied has brought. */
static void count(const struct informer *informer, struct informer_report *out)
{
	out->counts = informer->past;
	out->objects = store_count(informer->store);
	out->bytes = store_bytes(informer->store);
	for (size_t i = 0; i < informer->scope_count; i++) {
		struct reflector_report report;
		if (!informer->scopes[i].reflector)
			continue;
		reflector_report(informer->scopes[i].reflector, &report);
		reflector_counts_add(&out->counts, &report.counts);
		if (informer->scopes[i].listed)
			continue;
		out->objects += report.objects;
		out->bytes += report.bytes;
	}
}

void informer_report(const struct informer *informer, struct informer_report *out)
{
	*out = (struct informer_report){
	    .label = informer->spec.label,
	    .api_version = informer->spec.api_version,
	    .kind = informer_kind(informer),
	    .namespace = informer->spec.namespace_text,
	    .started = informer_started(informer),
	    .synced = informer->synced,
	    .attempts = informer->attempts,
	    .next_try = informer->phase == INFORMER_WAITING ? informer->next_try : 0,
	    .status = informer->err.code,
	    .duplicates = informer->apply.duplicates,
	    .stale = informer->apply.stale,
	};
	count(informer, out);
	if (informer->phase == INFORMER_RUNNING) {
		describe_scopes(informer, out);
		return;
	}
	describe_look_up(informer, out->state, sizeof(out->state));
	snprintf(out->message, sizeof(out->message), "%s", informer->err.message);
}
