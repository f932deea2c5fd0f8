/* cache_driver: core/cache on orders, with events on stdout, one JSON object a line; logs on stderr.
 *
 *   cache_driver [--kubeconfig FILE]
 *
 * Orders come from stdin, one a line, fields parted by tabs, until "quit" or the end of input:
 *
 * - informer id= apiVersion= kind= resource= namespaces=a,b labels= fields= drop=a,b keep=a,b metadata=1 raw=1
 * page_size=
 * - … end=1: once it has synced, it is let go of and the factory is shut down, inside its own callback
 * - … optional=1: as the factory's informers can be
 * - … second=1: of a second factory, as with start, barrier and shutdown
 * - start: the factory's start
 * - listen id= informer= every=1 resync= open=1
 * - … hold=1: notifications wait until "drain"; quiet=1: they are only counted; end=1: freed inside its first callback
 * - open id=: opens a listener
 * - drain id= count=: gives out so many (all when not given)
 * - forget id=: frees a listener
 * - stats id=: of a listener
 * - barrier id= informers=a,b patience= timeout= end=1 (freed inside its callback)
 * - late id=, table id=: a barrier's texts
 * - report id=: of an informer
 * - store id=: its keys and resourceVersions, in order
 * - get id= key=: one object
 * - index id= name= path=: adds an index
 * - find id= name= value=: keys by index; with namespace= instead: keys of a namespace
 * - advance seconds=: moves the clock
 * - rush seconds= looks=: so much time passes with each of the next looks at the clock, so that what goes in turns
 * takes many
 * - probe: begins to measure how long the loop is held, in seconds of its thread's own; held: says the longest
 * - shutdown: the factory's shutdown
 *
 * Every order is answered by "ok" or "bad" once it is carried out. An informer says "change" when its state, synced,
 * attempts or numbers of requests change. */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strmap.h"
#include "cache/barrier.h"
#include "cache/factory.h"

#define MAX_FIELDS 32
#define TURN 2000 /* notifications */

struct order {
	char *verb;
	char *keys[MAX_FIELDS], *values[MAX_FIELDS];
	int count;
};

struct watched {
	char *id;
	struct informer *informer; /* a reference */
	struct informer_observer observer;
	char last[400];
	bool end;
};

struct handler {
	char *id;
	struct listener *listener;
	struct loop_job job;
	bool hold, quiet, end;
	unsigned long adds, updates, deletes;
	double first_at, last_at;
	bool was_synced;
};

struct gate {
	char *id;
	struct barrier *barrier;
	bool end;
};

static struct loop *loop;
static struct cluster *cluster;
static struct pool *pool;
static struct factory *factory, *second;
static struct strmap informers, handlers, gates;
static _Atomic double advanced, rush;
static _Atomic long rush_looks;

/* A timer of a millisecond, and how much of the processor the loop took at most from one time to the next. */
static struct loop_timer probe;
static double probed_at, held;

static const char *field(const struct order *order, const char *key)
{
	for (int i = 0; i < order->count; i++)
		if (!strcmp(order->keys[i], key))
			return order->values[i];
	return NULL;
}

static double number(const struct order *order, const char *key)
{
	const char *value = field(order, key);
	return value ? atof(value) : 0;
}

static void *named(const struct strmap *map, const struct order *order)
{
	const char *id = field(order, "id");
	return id ? strmap_get(map, id, strlen(id)) : NULL;
}

static double moved(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	if (rush_looks > 0 && rush_looks-- > 0)
		advanced = advanced + rush;
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + advanced;
}

static double moved_clock(void *data)
{
	(void)data;
	return moved(CLOCK_MONOTONIC);
}

static double moved_wall(void *data)
{
	(void)data;
	return moved(CLOCK_REALTIME);
}

/* One event; the functions add_… give it members. */
static struct buf line;

static void begin_event(const char *event, const char *id)
{
	buf_reset(&line);
	buf_append_format(&line, "{\"event\":\"%s\"", event);
	if (id) {
		buf_append_text(&line, ",\"id\":");
		buf_append_json_string(&line, id, strlen(id));
	}
}

static void add_text(const char *key, const char *value)
{
	if (!value)
		return;
	buf_append_format(&line, ",\"%s\":", key);
	buf_append_json_string(&line, value, strlen(value));
}

static void add_number(const char *key, double value)
{
	buf_append_format(&line, ",\"%s\":%.17g", key, value);
}

static void add_flag(const char *key, bool value)
{
	if (value)
		buf_append_format(&line, ",\"%s\":true", key);
}

static void end_event(void)
{
	buf_append_text(&line, "}\n");
	for (size_t done = 0; done < line.length;) {
		ssize_t written = write(STDOUT_FILENO, line.data + done, line.length - done);
		if (written <= 0)
			exit(1);
		done += (size_t)written;
	}
}

static void say(const char *event)
{
	begin_event(event, NULL);
	end_event();
}

static void add_causes(const char *name, const unsigned long counts[REFLECTOR_CAUSES])
{
	const char *comma = "";
	buf_append_format(&line, ",\"%s\":{", name);
	for (int i = 0; i < REFLECTOR_CAUSES; i++) {
		if (!counts[i])
			continue;
		buf_append_format(&line, "%s\"%s\":%lu", comma, reflector_cause_name((enum reflector_cause)i),
				  counts[i]);
		comma = ",";
	}
	buf_append_char(&line, '}');
}

static void add_report(const struct informer_report *report)
{
	add_text("label", report->label);
	add_text("kind", report->kind);
	add_text("state", report->state);
	add_text("message", report->message);
	add_flag("synced", report->synced);
	add_number("objects", (double)report->objects);
	add_number("bytes", (double)report->bytes);
	add_number("attempts", report->attempts);
	add_number("status", report->status);
	if (report->next_try > 0)
		add_number("wait", report->next_try - clock_now());
	add_number("lists", (double)report->counts.lists);
	add_number("watches", (double)report->counts.watches);
	add_number("bookmarks", (double)report->counts.bookmarks);
	add_number("duplicates", (double)report->duplicates);
	add_number("stale", (double)report->stale);
	add_number("skipped", (double)report->counts.skipped);
	add_causes("relists", report->counts.relists);
	add_causes("restarts", report->counts.restarts);
}

static void free_watched(struct watched *watched)
{
	informer_unobserve(&watched->observer);
	informer_unref(watched->informer);
	alloc_free(watched->id);
	alloc_free(watched);
}

static void end_watched(struct watched *watched)
{
	strmap_remove(&informers, watched->id, strlen(watched->id));
	free_watched(watched);
	factory_shutdown(factory);
}

static void on_change(void *data)
{
	struct watched *watched = data;
	struct informer_report report;
	char now[sizeof(watched->last)];
	informer_report(watched->informer, &report);
	snprintf(now, sizeof(now), "%.*s %d %u %lu %lu", (int)strcspn(report.state, "0123456789"), report.state,
		 report.synced, report.attempts, report.counts.lists, report.counts.watches);
	if (!strcmp(now, watched->last))
		return;
	strcpy(watched->last, now);
	begin_event("change", watched->id);
	add_report(&report);
	end_event();
	if (watched->end && report.synced)
		end_watched(watched);
}

/* The parts of "a,b", in place. */
static const char **split_list(char *text, size_t *count)
{
	const char **parts = alloc_zero((strlen(text) + 2) * sizeof(*parts));
	for (char *part; (part = strsep(&text, ","));)
		if (*part)
			parts[(*count)++] = part;
	return parts;
}

static const char **list_field(const struct order *order, const char *key, size_t *count)
{
	char *text = (char *)field(order, key);
	*count = 0;
	return text ? split_list(text, count) : NULL;
}

static struct factory *factory_of(const struct order *order)
{
	return number(order, "second") != 0 ? second : factory;
}

static bool do_informer(const struct order *order)
{
	struct informer_spec spec = {
	    .api_version = field(order, "apiVersion"),
	    .kind = field(order, "kind"),
	    .resource = field(order, "resource"),
	    .label_selector = field(order, "labels"),
	    .field_selector = field(order, "fields"),
	    .metadata_only = number(order, "metadata") != 0,
	    .page_size = (int)number(order, "page_size"),
	    .raw = number(order, "raw") != 0,
	    .optional = number(order, "optional") != 0,
	};
	struct err err;
	const char **namespaces = list_field(order, "namespaces", &spec.namespace_count);
	const char **drop = list_field(order, "drop", &spec.drop_count);
	const char **keep = list_field(order, "keep", &spec.keep_count);
	spec.namespaces = namespaces;
	spec.drop = drop;
	spec.keep = keep;
	spec.drop_given = drop != NULL;
	struct informer *informer = factory_informer(factory_of(order), &spec, &err);
	alloc_free(namespaces);
	alloc_free(drop);
	alloc_free(keep);
	if (!informer) {
		begin_event("refused", field(order, "id"));
		add_text("message", err.message);
		end_event();
		return true;
	}
	struct watched *watched = alloc_zero(sizeof(*watched));
	watched->id = alloc_string(field(order, "id"));
	watched->informer = informer_ref(informer);
	watched->end = number(order, "end") != 0;
	watched->observer.on_change = on_change;
	watched->observer.data = watched;
	informer_observe(informer, &watched->observer);
	strmap_put(&informers, watched->id, strlen(watched->id), watched);
	return true;
}

static bool do_start(const struct order *order)
{
	factory_start(factory_of(order));
	return true;
}

static void say_notification(const struct handler *handler, const struct notification *notification)
{
	static const char *const names[] = {"add", "update", "delete"};
	size_t length;
	begin_event(names[notification->type], handler->id);
	add_text("key", object_key(notification->object, &length));
	add_text("version", object_version(notification->object));
	char uid[OBJECT_UID_SIZE];
	add_text("uid", object_uid(notification->object, uid));
	if (notification->old)
		add_text("old", object_version(notification->old));
	add_flag("initial", notification->initial);
	add_flag("resync", notification->resync);
	add_flag("final_state_unknown", notification->final_state_unknown);
	end_event();
}

static void handle(struct handler *handler, struct notification *notification)
{
	handler->adds += notification->type == NOTIFY_ADD;
	handler->updates += notification->type == NOTIFY_UPDATE;
	handler->deletes += notification->type == NOTIFY_DELETE;
	handler->last_at = clock_now();
	if (!handler->first_at)
		handler->first_at = handler->last_at;
	if (!handler->quiet)
		say_notification(handler, notification);
	notification_fini(notification);
	listener_done(handler->listener);
}

/* False when there was less. */
static bool drain(struct handler *handler, double most)
{
	struct notification notification;
	bool some = true;
	while (most-- > 0 && (some = listener_pop(handler->listener, &notification)))
		handle(handler, &notification);
	if (listener_has_synced(handler->listener) && !handler->was_synced) {
		handler->was_synced = true;
		begin_event("synced", handler->id);
		end_event();
	}
	return some;
}

static void free_handler(struct handler *handler)
{
	loop_job_cancel(&handler->job);
	listener_free(handler->listener);
	alloc_free(handler->id);
	alloc_free(handler);
}

/* A handler's turn; as many as a real one may have in its time. */
static void on_turn(void *data)
{
	struct handler *handler = data;
	if (drain(handler, TURN))
		loop_post(loop, &handler->job);
}

static void on_ready(void *data)
{
	struct handler *handler = data;
	if (handler->end) {
		strmap_remove(&handlers, handler->id, strlen(handler->id));
		free_handler(handler);
	} else if (!handler->hold) {
		on_turn(handler);
	}
}

static bool do_listen(const struct order *order)
{
	const char *id = field(order, "informer");
	struct watched *watched = id ? strmap_get(&informers, id, strlen(id)) : NULL;
	if (!watched)
		return false;
	struct handler *handler = alloc_zero(sizeof(*handler));
	handler->id = alloc_string(field(order, "id"));
	handler->hold = number(order, "hold") != 0;
	handler->quiet = number(order, "quiet") != 0;
	handler->end = number(order, "end") != 0;
	handler->listener = listener_new(watched->informer, &(struct listener_options){
								.every_event = number(order, "every") != 0,
								.resync = number(order, "resync"),
								.on_ready = on_ready,
								.data = handler,
							    });
	loop_job_init(&handler->job, on_turn, handler);
	strmap_put(&handlers, handler->id, strlen(handler->id), handler);
	if (number(order, "open") != 0)
		listener_open(handler->listener);
	return true;
}

static bool do_open(const struct order *order)
{
	struct handler *handler = named(&handlers, order);
	if (handler)
		listener_open(handler->listener);
	return handler != NULL;
}

static bool do_drain(const struct order *order)
{
	struct handler *handler = named(&handlers, order);
	if (handler)
		drain(handler, field(order, "count") ? number(order, "count") : 1e18);
	return handler != NULL;
}

static bool do_forget(const struct order *order)
{
	struct handler *handler = named(&handlers, order);
	if (!handler)
		return false;
	strmap_remove(&handlers, handler->id, strlen(handler->id));
	free_handler(handler);
	return true;
}

static bool do_stats(const struct order *order)
{
	struct handler *handler = named(&handlers, order);
	if (!handler)
		return false;
	begin_event("stats", handler->id);
	add_number("adds", (double)handler->adds);
	add_number("updates", (double)handler->updates);
	add_number("deletes", (double)handler->deletes);
	add_number("seconds", handler->last_at - handler->first_at);
	add_number("depth", (double)listener_depth(handler->listener));
	add_number("age", listener_age(handler->listener));
	add_flag("synced", listener_has_synced(handler->listener));
	end_event();
	return true;
}

static void free_gate(struct gate *gate)
{
	barrier_free(gate->barrier);
	alloc_free(gate->id);
	alloc_free(gate);
}

static void on_gate(void *data, enum barrier_outcome outcome)
{
	struct gate *gate = data;
	begin_event(outcome == BARRIER_OPEN ? "gate_open" : "gate_late", gate->id);
	end_event();
	if (!gate->end)
		return;
	strmap_remove(&gates, gate->id, strlen(gate->id));
	free_gate(gate);
}

static bool do_barrier(const struct order *order)
{
	struct gate *gate = alloc_zero(sizeof(*gate));
	size_t count;
	gate->id = alloc_string(field(order, "id"));
	gate->end = number(order, "end") != 0;
	gate->barrier = barrier_new(loop, &(struct barrier_options){
					      .patience = number(order, "patience"),
					      .timeout = number(order, "timeout"),
					      .announce = true,
					      .on_done = on_gate,
					      .data = gate,
					  });
	const char **ids = list_field(order, "informers", &count);
	for (size_t i = 0; i < count; i++) {
		struct watched *watched = strmap_get(&informers, ids[i], strlen(ids[i]));
		if (watched)
			barrier_add(gate->barrier, watched->informer,
				    !factory_needs(factory_of(order), watched->informer));
	}
	alloc_free(ids);
	strmap_put(&gates, gate->id, strlen(gate->id), gate);
	barrier_start(gate->barrier);
	return true;
}

static bool say_gate(const struct order *order, const char *event, void (*text)(const struct barrier *, struct buf *))
{
	struct gate *gate = named(&gates, order);
	struct buf out;
	if (!gate)
		return false;
	buf_init(&out, 0);
	text(gate->barrier, &out);
	begin_event(event, gate->id);
	add_text("text", buf_text(&out));
	end_event();
	buf_fini(&out);
	return true;
}

static bool do_late(const struct order *order)
{
	return say_gate(order, "late", barrier_late);
}

static bool do_table(const struct order *order)
{
	return say_gate(order, "table", barrier_report);
}

static bool do_report(const struct order *order)
{
	struct watched *watched = named(&informers, order);
	struct informer_report report;
	struct rusage usage;
	if (!watched)
		return false;
	informer_report(watched->informer, &report);
	getrusage(RUSAGE_SELF, &usage);
	begin_event("report", watched->id);
	add_report(&report);
	add_text("version", informer_version(watched->informer, 0));
	add_number("peak_kib", (double)usage.ru_maxrss);
	add_number("cpu_seconds", (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6 +
				      (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6);
	end_event();
	return true;
}

/* Objects as ["key","version"]. */
static bool list_object(void *data, struct object *object)
{
	bool *first = data;
	size_t length;
	const char *key = object_key(object, &length), *version = object_version(object);
	buf_append_text(&line, *first ? "[" : ",[");
	buf_append_json_string(&line, key, length);
	buf_append_char(&line, ',');
	buf_append_json_string(&line, version, strlen(version));
	buf_append_char(&line, ']');
	*first = false;
	return true;
}

static void begin_objects(const char *event, const char *id)
{
	begin_event(event, id);
	buf_append_text(&line, ",\"objects\":[");
}

static void end_objects(void)
{
	buf_append_char(&line, ']');
	end_event();
}

static bool do_store(const struct order *order)
{
	struct watched *watched = named(&informers, order);
	bool first = true;
	if (!watched)
		return false;
	begin_objects("store", watched->id);
	store_each(informer_store(watched->informer), NULL, list_object, &first);
	end_objects();
	store_check(informer_store(watched->informer));
	return true;
}

static bool do_get(const struct order *order)
{
	struct watched *watched = named(&informers, order);
	const char *key = field(order, "key");
	struct buf scratch;
	if (!watched || !key)
		return false;
	struct object *object = store_get_key(informer_store(watched->informer), key, strlen(key));
	buf_init(&scratch, 0);
	begin_event("object", watched->id);
	if (object) {
		struct json_slice json = object_open(object, &scratch);
		buf_append_text(&line, ",\"object\":");
		buf_append(&line, json.data, json.length);
	}
	end_event();
	buf_fini(&scratch);
	return true;
}

static bool do_index(const struct order *order)
{
	struct watched *watched = named(&informers, order);
	struct json_path *path = json_path_new(field(order, "path"), NULL);
	return watched && path &&
	       !store_add_index(informer_store(watched->informer), field(order, "name"), store_path_index(path));
}

static bool do_find(const struct order *order)
{
	struct watched *watched = named(&informers, order);
	const char *value = field(order, "value");
	bool first = true;
	if (!watched)
		return false;
	struct store *store = informer_store(watched->informer);
	begin_objects("found", watched->id);
	if (field(order, "name"))
		store_each_index(store, field(order, "name"), value, strlen(value), list_object, &first);
	else
		store_each(store, field(order, "namespace"), list_object, &first);
	end_objects();
	return true;
}

static bool do_advance(const struct order *order)
{
	advanced = advanced + number(order, "seconds");
	return true;
}

static bool do_rush(const struct order *order)
{
	rush = number(order, "seconds");
	rush_looks = (long)number(order, "looks");
	return true;
}

static double spent(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void on_probe(void *data)
{
	(void)data;
	held = fmax(held, spent() - probed_at);
	probed_at = spent();
	loop_timer_start(loop, &probe, 0.001);
}

static bool do_probe(const struct order *order)
{
	(void)order;
	held = 0;
	probed_at = spent();
	on_probe(NULL);
	return true;
}

static bool do_held(const struct order *order)
{
	(void)order;
	begin_event("held", NULL);
	add_number("seconds", held);
	end_event();
	return true;
}

static bool do_shutdown(const struct order *order)
{
	factory_shutdown(factory_of(order));
	return true;
}

static bool do_quit(const struct order *order)
{
	(void)order;
	size_t cursor = 0;
	void *value;
	while (strmap_next(&handlers, &cursor, NULL, NULL, &value))
		free_handler(value);
	cursor = 0;
	while (strmap_next(&gates, &cursor, NULL, NULL, &value))
		free_gate(value);
	factory_free(factory);
	factory_free(second);
	cursor = 0;
	while (strmap_next(&informers, &cursor, NULL, NULL, &value))
		free_watched(value);
	pool_free(pool);
	loop_timer_stop(loop, &probe);
	loop_stop(loop);
	return true;
}

static const struct {
	const char *verb;
	bool (*run)(const struct order *order);
} verbs[] = {
    {"informer", do_informer}, {"start", do_start},   {"listen", do_listen}, {"open", do_open},
    {"drain", do_drain},       {"forget", do_forget}, {"stats", do_stats},   {"barrier", do_barrier},
    {"late", do_late},         {"table", do_table},   {"report", do_report}, {"store", do_store},
    {"get", do_get},           {"index", do_index},   {"find", do_find},     {"advance", do_advance},
    {"shutdown", do_shutdown}, {"quit", do_quit},     {"rush", do_rush},     {"probe", do_probe},
    {"held", do_held},
};

static void carry_out(void *data)
{
	const struct order *order = data;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].verb, order->verb)) {
			say(verbs[i].run(order) ? "ok" : "bad");
			return;
		}
	say("bad");
}

static void parse(struct order *order, char *text)
{
	*order = (struct order){.verb = strsep(&text, "\t")};
	for (char *word; (word = strsep(&text, "\t")) && order->count < MAX_FIELDS;) {
		order->keys[order->count] = strsep(&word, "=");
		order->values[order->count++] = word ? word : "";
	}
}

static void *read_orders(void *data)
{
	(void)data;
	char *text = NULL;
	size_t room = 0;
	bool last = false;
	while (!last) {
		ssize_t length = getline(&text, &room, stdin);
		struct order order = {.verb = "quit"};
		if (length > 0) {
			text[strcspn(text, "\n")] = '\0';
			parse(&order, text);
		}
		last = !strcmp(order.verb, "quit");
		loop_call(loop, carry_out, &order, 3600);
	}
	free(text);
	return NULL;
}

static void run(void)
{
	pthread_t reader;
	loop_timer_init(&probe, on_probe, NULL);
	pool = pool_new(cluster);
	factory = factory_new(pool);
	second = factory_new(pool);
	say("ready");
	pthread_create(&reader, NULL, read_orders, NULL);
	loop_run(loop);
	pthread_join(reader, NULL);
}

static struct cluster *connect_to(const char *kubeconfig, struct err *err)
{
	struct config *config = config_load(&(struct config_options){.kubeconfig = kubeconfig}, err);
	return config ? cluster_new(loop, config, err) : NULL;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"kubeconfig", required_argument, NULL, 'k'}, {NULL, 0, NULL, 0}};
	const char *kubeconfig = NULL;
	struct err err;
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (c != 'k')
			return 2;
		kubeconfig = optarg;
	}
	clock_replace(moved_clock, moved_wall, NULL);
	strmap_init(&informers);
	strmap_init(&handlers);
	strmap_init(&gates);
	loop = loop_new(&err);
	cluster = loop ? connect_to(kubeconfig, &err) : NULL;
	if (cluster) {
		run();
	} else {
		begin_event("fatal", NULL);
		add_text("message", err.message);
		end_event();
	}
	cluster_free(cluster);
	strmap_fini(&informers);
	strmap_fini(&handlers);
	strmap_fini(&gates);
	if (loop)
		loop_free(loop);
	begin_event("end", NULL);
	add_number("live", (double)alloc_live(stderr));
	end_event();
	buf_fini(&line);
	return 0;
}
