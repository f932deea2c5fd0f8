/* describe: what a host tells about itself: check's list, /readyz?verbose and /status. Read-only. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/informer.h"
#include "script/consumer.h"
#include "script/host_private.h"
#include "script/reconciler.h"
#include "script/script.h"

static size_t list_length(const struct list *list)
{
	size_t count = 0;
	LIST_EACH (list, node)
		count++;
	return count;
}

/* --- check --- */

struct description {
	struct script *script;
	struct buf *out;
};

static size_t count_handlers(const struct script *script, const struct informer *informer)
{
	size_t count = 0;
	LIST_EACH (&script->consumers, node)
		if (consumer_informer(consumer_of_node(node)) == informer)
			count++;
	return count;
}

static void describe_informer(void *data, struct informer *informer)
{
	const struct description *description = data;
	size_t handlers = count_handlers(description->script, informer);
	buf_append_format(description->out, "  informer %s, %zu handler%s\n", informer_label(informer), handlers,
			  handlers == 1 ? "" : "s");
}

static void describe_calls(const struct list *calls, const char *what, struct buf *out)
{
	size_t count = list_length(calls);
	if (count > 0)
		buf_append_format(out, "  %s%s", what, count == 1 ? "\n" : "");
	if (count > 1)
		buf_append_format(out, " (%zu)\n", count);
}

static void describe_source(void *data, enum source_kind kind, const struct informer *informer)
{
	static const char *const words[] = {[SOURCE_WATCH] = "watches", [SOURCE_OWNS] = "owns", [SOURCE_MAP] = "maps"};
	buf_append_format(data, ", %s %s", words[kind], informer_label(informer));
}

static void describe_controller(const struct reconciler *reconciler, struct buf *out)
{
	const struct controller *controller = reconciler_controller(reconciler);
	unsigned workers = reconciler_workers(reconciler);
	buf_append_format(out, "  controller %s, %u worker%s", controller_name(controller), workers,
			  workers == 1 ? "" : "s");
	reconciler_each_source(reconciler, describe_source, out);
	buf_append_text(out, "\n");
}

static void append_words(struct json_slice list, struct buf *out)
{
	struct json_iter iter = json_iterate(list);
	for (bool first = true; json_next(&iter); first = false) {
		buf_append_text(out, first ? "" : ", ");
		json_string_append(iter.value, out);
	}
}

/* "  needs get, list of pods, in "apps, example.com"": a rule of k8s.needs. */
static void describe_need(struct json_slice rule, struct buf *out)
{
	struct json_slice groups = json_get(rule, "apiGroups");
	buf_append_text(out, "  needs ");
	append_words(json_get(rule, "verbs"), out);
	buf_append_text(out, " of ");
	append_words(json_get(rule, "resources"), out);
	buf_append_text(out, " in \"");
	append_words(groups, out);
	buf_append_text(out, "\"\n");
}

static void describe_needs(const struct script *script, struct buf *out)
{
	struct buf list;
	buf_init(&list, 0);
	buf_append_format(&list, "[%s]", buf_text(&script->needs));
	struct json_iter iter = json_iterate((struct json_slice){list.data, list.length});
	while (json_next(&iter))
		describe_need(iter.value, out);
	buf_fini(&list);
}

static void describe_script(struct script *script, struct buf *out)
{
	struct description description = {script, out};
	buf_append_format(out, "%s (%s)%s\n", script->name, script->path,
			  script_is_empty(script) ? ": registers nothing" : "");
	LIST_EACH (&script->factories, node)
		factory_each(LIST_ENTRY(node, struct script_factory, node)->factory, describe_informer, &description);
	LIST_EACH (&script->reconcilers, reconciler_node)
		describe_controller(reconciler_of_node(reconciler_node), out);
	describe_calls(&script->mains, "main", out);
	describe_calls(&script->on_synced, "on_synced", out);
	describe_calls(&script->on_shutdown, "on_shutdown", out);
	LIST_EACH (&script->timers, timer_node)
		buf_append_format(out, "  every %g s\n", LIST_ENTRY(timer_node, struct script_call, node)->interval);
	describe_needs(script, out);
}

void host_describe(struct host *host, struct buf *out)
{
	LIST_EACH (host_scripts(host), node)
		describe_script(LIST_ENTRY(node, struct script, node), out);
}

/* --- readyz --- */

/* How far a late one has come, and what the server said. */
static void append_lateness(const struct informer_report *report, struct buf *out)
{
	buf_append_format(out, ", %zu bytes", report->bytes);
	if (report->attempts)
		buf_append_format(out, ", attempt %u", report->attempts);
	if (report->status)
		buf_append_format(out, ", HTTP %d", report->status);
}

static void append_readiness(void *data, struct informer *informer)
{
	struct buf *out = data;
	struct informer_report report;
	informer_report(informer, &report);
	buf_append_format(out, "[%c]%s %s, %zu object%s", report.synced || report.optional ? '+' : '-', report.label,
			  report.state, report.objects, report.objects == 1 ? "" : "s");
	if (!report.synced)
		append_lateness(&report, out);
	if (*report.message)
		buf_append_format(out, ": %s", report.message);
	buf_append_text(out, "\n");
}

void host_readiness(struct host *host, struct buf *out)
{
	pool_each(host_pool(host), append_readiness, out);
	buf_append_text(out, host_is_ready(host) ? "readyz check passed\n" : "readyz check failed\n");
}

/* --- status --- */

static void append_string(struct buf *out, const char *name, const char *value)
{
	buf_append_format(out, "\"%s\":", name);
	buf_append_json_string(out, value, strlen(value));
}

static void append_informer(void *data, struct informer *informer)
{
	struct buf *out = data;
	struct informer_report report;
	informer_report(informer, &report);
	buf_append_text(out, out->data[out->length - 1] == '[' ? "{" : ",{");
	const char *const texts[][2] = {{"apiVersion", report.api_version},
					{"kind", report.kind},
					{"namespace", report.namespace},
					{"state", report.state},
					{"message", report.message}};
	append_string(out, "informer", report.label);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_append_text(out, ",");
		append_string(out, texts[i][0], texts[i][1]);
	}
	if (report.status)
		buf_append_format(out, ",\"status\":%d", report.status);
	buf_append_format(out, ",\"started\":%s,\"synced\":%s,\"optional\":%s", report.started ? "true" : "false",
			  report.synced ? "true" : "false", report.optional ? "true" : "false");
	buf_append_format(out, ",\"objects\":%zu,\"bytes\":%zu,\"attempts\":%u,\"lists\":%lu,\"watches\":%lu",
			  report.objects, report.bytes, report.attempts, report.counts.lists, report.counts.watches);
	if (report.counts.last_event_at > 0)
		buf_append_format(out, ",\"lastEventSeconds\":%.3f", clock_now() - report.counts.last_event_at);
	buf_append_text(out, "}");
}

static void append_handlers(const struct script *script, struct buf *out)
{
	buf_append_text(out, ",\"handlers\":[");
	LIST_EACH (&script->consumers, node) {
		const struct consumer *consumer = consumer_of_node(node);
		buf_append_text(out, out->data[out->length - 1] == '[' ? "{" : ",{");
		append_string(out, "handler", consumer_place(consumer));
		buf_append_text(out, ",");
		append_string(out, "informer", informer_label(consumer_informer(consumer)));
		buf_append_format(out, ",\"synced\":%s,\"depth\":%zu,\"oldestSeconds\":%.3f}",
				  consumer_has_synced(consumer) ? "true" : "false", consumer_depth(consumer),
				  consumer_age(consumer));
	}
	buf_append_text(out, "]");
}

static void append_controllers(const struct script *script, struct buf *out)
{
	buf_append_text(out, ",\"controllers\":[");
	LIST_EACH (&script->reconcilers, node) {
		const struct controller *controller = reconciler_controller(reconciler_of_node(node));
		const struct workqueue *queue = controller_queue(controller);
		buf_append_text(out, out->data[out->length - 1] == '[' ? "{" : ",{");
		append_string(out, "controller", controller_name(controller));
		buf_append_format(out, ",\"started\":%s,\"workers\":%u,\"running\":%zu,\"depth\":%zu,\"delayed\":%zu",
				  controller_is_started(controller) ? "true" : "false",
				  reconciler_workers(reconciler_of_node(node)), workqueue_running(queue),
				  workqueue_depth(queue), workqueue_delayed(queue));
		buf_append_format(out, ",\"oldestSeconds\":%.3f}", workqueue_age(queue));
	}
	buf_append_text(out, "]");
}

static void append_script(const struct script *script, struct buf *out)
{
	buf_append_text(out, out->data[out->length - 1] == '[' ? "{" : ",{");
	append_string(out, "script", script->name);
	buf_append_text(out, ",");
	append_string(out, "file", script->path);
	buf_append_format(out, ",\"generation\":%u", script->generation);
	buf_append_format(out, ",\"memoryBytes\":%zu,\"runningCalls\":%u,\"events\":%lu,\"errors\":%lu",
			  script->state->memory, script->tasks, script->events, script->errors);
	buf_append_format(out, ",\"stops\":{\"time\":%lu,\"memory\":%lu}", script->state->stops[KILL_TIME],
			  script->state->stops[KILL_MEMORY]);
	if (script->state->parked) {
		buf_append_text(out, ",");
		append_string(out, "parked", script->state->parked);
	}
	append_handlers(script, out);
	append_controllers(script, out);
	buf_append_text(out, "}");
}

void host_status_json(struct host *host, struct buf *out)
{
	buf_append_format(out, "{\"version\":\"%s\",\"ready\":%s,\"informers\":[", PERILUNE_VERSION,
			  host_is_ready(host) ? "true" : "false");
	pool_each(host_pool(host), append_informer, out);
	buf_append_text(out, "],\"election\":");
	host_describe_leadership(host, out);
	buf_append_text(out, ",\"scripts\":[");
	LIST_EACH (host_scripts(host), node)
		append_script(LIST_ENTRY(node, struct script, node), out);
	buf_append_text(out, "]}\n");
}
