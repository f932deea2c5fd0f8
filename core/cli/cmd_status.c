/* The host's own JSON, laid out in tables. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/table.h"
#include "script/host.h"
#include "json/scan.h"

#define PATIENCE 5.0 /* a loop that takes longer is stuck in something */

/* --- cells --- */

static double number_of(struct json_slice object, const char *key)
{
	struct json_slice value = json_get(object, key);
	return json_type(value) == JSON_NUMBER ? strtod(value.data, NULL) : 0;
}

static bool is_true(struct json_slice object, const char *key)
{
	return json_bool(json_get(object, key), false);
}

static void add_text(struct table *table, struct json_slice object, const char *key)
{
	struct buf text;
	buf_init(&text, 0);
	json_string_append(json_get(object, key), &text);
	table_add(table, buf_text(&text));
	buf_fini(&text);
}

static void add_flag(struct table *table, struct json_slice object, const char *key)
{
	table_add(table, is_true(object, key) ? "yes" : "no");
}

static void add_count(struct table *table, struct json_slice object, const char *key)
{
	if (json_get(object, key).data)
		table_add_format(table, "%.0f", number_of(object, key));
	else
		table_add(table, "");
}

static void add_size(struct table *table, struct json_slice object, const char *key)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = number_of(object, key);
	size_t unit = 0;
	for (; size >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		size /= 1024;
	table_add_format(table, "%.*f%s", unit && size < 10 ? 1 : 0, size, units[unit]);
}

static void add_seconds(struct table *table, double seconds)
{
	if (seconds < 10)
		table_add_format(table, "%.1fs", seconds);
	else if (seconds < 120)
		table_add_format(table, "%.0fs", seconds);
	else if (seconds < 7200)
		table_add_format(table, "%.0fm", seconds / 60);
	else if (seconds < 172800)
		table_add_format(table, "%.0fh", seconds / 3600);
	else
		table_add_format(table, "%.0fd", seconds / 86400);
}

static void add_age(struct table *table, struct json_slice object, const char *key)
{
	if (json_get(object, key).data)
		add_seconds(table, number_of(object, key));
	else
		table_add(table, "");
}

/* Of a queue: nothing is as old as nothing. */
static void add_oldest(struct table *table, struct json_slice queue)
{
	if (number_of(queue, "oldestSeconds") > 0)
		add_seconds(table, number_of(queue, "oldestSeconds"));
	else
		table_add(table, "");
}

/* --- tables --- */

static void print_informers(struct json_slice status)
{
	static const char *const titles[] = {"INFORMER", "SYNCED", "OBJECTS", "SIZE", "LAST EVENT", "STATE", NULL};
	struct json_iter iter = json_iterate(json_get(status, "informers"));
	struct table table;
	table_init(&table, titles);
	while (json_next(&iter)) {
		struct buf state;
		buf_init(&state, 0);
		json_string_append(json_get(iter.value, "state"), &state);
		if (json_get(iter.value, "message").length > 2)
			buf_append_text(&state, ": ");
		json_string_append(json_get(iter.value, "message"), &state);
		add_text(&table, iter.value, "informer");
		add_flag(&table, iter.value, "synced");
		add_count(&table, iter.value, "objects");
		add_size(&table, iter.value, "bytes");
		add_age(&table, iter.value, "lastEventSeconds");
		table_add(&table, buf_text(&state));
		buf_fini(&state);
	}
	table_print(&table, stdout);
	table_fini(&table);
}

static bool is_parked(struct json_slice script)
{
	return json_type(json_get(script, "parked")) == JSON_STRING;
}

static void add_script_state(struct table *table, struct json_slice script)
{
	struct buf state;
	buf_init(&state, 0);
	buf_append_text(&state, is_parked(script) ? "parked: " : "running");
	json_string_append(json_get(script, "parked"), &state);
	table_add(table, buf_text(&state));
	buf_fini(&state);
}

static void print_scripts(struct json_slice status)
{
	static const char *const titles[] = {"SCRIPT", "GENERATION", "MEMORY", "RUNNING", "EVENTS",
					     "ERRORS", "FILE",       "STATE",  NULL};
	struct json_iter iter = json_iterate(json_get(status, "scripts"));
	struct table table;
	table_init(&table, titles);
	while (json_next(&iter)) {
		add_text(&table, iter.value, "script");
		add_count(&table, iter.value, "generation");
		add_size(&table, iter.value, "memoryBytes");
		add_count(&table, iter.value, "runningCalls");
		add_count(&table, iter.value, "events");
		add_count(&table, iter.value, "errors");
		add_text(&table, iter.value, "file");
		add_script_state(&table, iter.value);
	}
	table_print(&table, stdout);
	table_fini(&table);
}

static void add_handler(struct table *table, struct json_slice script, struct json_slice handler)
{
	add_text(table, handler, "handler");
	add_text(table, script, "script");
	add_text(table, handler, "informer");
	add_flag(table, handler, "synced");
	add_count(table, handler, "depth");
	add_oldest(table, handler);
}

static void add_controller(struct table *table, struct json_slice script, struct json_slice controller)
{
	add_text(table, controller, "controller");
	add_text(table, script, "script");
	add_flag(table, controller, "started");
	add_count(table, controller, "workers");
	add_count(table, controller, "running");
	add_count(table, controller, "depth");
	add_count(table, controller, "delayed");
	add_oldest(table, controller);
}

/* What scripts have several of, in one table. */
static void print_queues(struct json_slice status, const char *key, const char *const *titles,
			 void (*add)(struct table *table, struct json_slice script, struct json_slice queue))
{
	struct json_iter scripts = json_iterate(json_get(status, "scripts"));
	struct table table;
	table_init(&table, titles);
	while (json_next(&scripts)) {
		struct json_iter queues = json_iterate(json_get(scripts.value, key));
		while (json_next(&queues))
			add(&table, scripts.value, queues.value);
	}
	table_print(&table, stdout);
	table_fini(&table);
}

static void print_handlers(struct json_slice status)
{
	static const char *const titles[] = {"HANDLER", "SCRIPT", "INFORMER", "SYNCED", "DEPTH", "OLDEST", NULL};
	print_queues(status, "handlers", titles, add_handler);
}

static void print_controllers(struct json_slice status)
{
	static const char *const titles[] = {"CONTROLLER", "SCRIPT",  "STARTED", "WORKERS", "RUNNING",
					     "DEPTH",      "DELAYED", "OLDEST",  NULL};
	print_queues(status, "controllers", titles, add_controller);
}

/* --- the whole, and who leads --- */

static unsigned count_parked(struct json_slice status)
{
	struct json_iter iter = json_iterate(json_get(status, "scripts"));
	unsigned count = 0;
	while (json_next(&iter))
		count += is_parked(iter.value);
	return count;
}

static void print_summary(struct json_slice status)
{
	struct json_iter iter = json_iterate(json_get(status, "informers"));
	unsigned waited_for = 0, synced = 0;
	while (json_next(&iter)) {
		if (is_true(iter.value, "optional") && !is_true(iter.value, "synced"))
			continue;
		waited_for++;
		synced += is_true(iter.value, "synced");
	}
	printf("%s, %u of %u informer%s synced", is_true(status, "ready") ? "ready" : "not ready", synced, waited_for,
	       waited_for == 1 ? "" : "s");
	unsigned parked = count_parked(status);
	if (parked)
		printf(", %u script%s parked", parked, parked == 1 ? "" : "s");
	printf("\n");
}

static void print_leadership(struct json_slice status)
{
	static const char *const titles[] = {"LEASE", "LEADING", "LEADER", "IDENTITY", NULL};
	struct json_slice election = json_get(status, "election");
	struct table table;
	if (json_type(election) != JSON_OBJECT)
		return;
	table_init(&table, titles);
	add_text(&table, election, "lease");
	add_flag(&table, election, "leading");
	add_text(&table, election, "leader");
	add_text(&table, election, "identity");
	table_print(&table, stdout);
	table_fini(&table);
}

static void print_tables(struct json_slice status)
{
	print_summary(status);
	print_leadership(status);
	print_informers(status);
	print_scripts(status);
	print_handlers(status);
	print_controllers(status);
}

int cmd_status(const struct options *options)
{
	struct buf status;
	buf_init(&status, 0);
	int code = remote_ask(options, "status", PATIENCE, NULL, NULL, &status);
	if (!code && options->output && !strcmp(options->output, "json"))
		fwrite(status.data, 1, status.length, stdout);
	else if (!code)
		print_tables(json_trim(status.data, status.length));
	buf_fini(&status);
	return code;
}
