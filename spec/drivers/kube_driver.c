/* kube_driver: core/kube on orders, with events on stdout, one JSON object a line; logs on stderr.
 *
 *   kube_driver [--kubeconfig LIST] [--context NAME] [--namespace NAME] [--dry-run] [VERB [KEY=VALUE]...]
 *
 * With a VERB that one order is carried out; without, orders come from stdin, one a line, fields parted by tabs, until
 * "quit" or the end of input. start   id= path= method= query= body= content_type= accept= timeout= limit= stream=1
 * list=1 frames=1 items=1 cancel_on=head|chunk|frame|wait (an id's events: head, chunk, frame, wait, done) burst   id=
 * count= path=        so many at once; one event "done" with the most that ran cancel  id= find    id= api_version=
 * kind= plural= (event: found); cancel takes it too known   api_version= kind= plural= forget  api_version= advance
 * seconds=                moves the clock; then_advance= of start does so before anything is
 * sent elect   namespace= name= duration= deadline= retry=   (events: leading, lost, stopped), then start leader=1
 * resign, election   (event: election) Every order is answered by "ok" or "bad" once it is carried out. Orders come
 * in through loop_call from a thread. */
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strmap.h"
#include "kube/discovery.h"
#include "kube/elector.h"
#include "kube/frame.h"
#include "kube/request.h"
#include "kube/status.h"
#include "json/split.h"

#define MAX_FIELDS 32
#define FRAME_LIMIT ((size_t)16 << 20)

struct order {
	char *verb;
	char *keys[MAX_FIELDS], *values[MAX_FIELDS];
	int count;
};

/* One request of a burst. */
struct shot {
	struct run *run;
	struct request *request; /* NULL when it is over */
};

/* One started thing: a request, a burst or a look-up. */
struct run {
	char *id, *cancel_on;
	struct request *request;
	struct discovery_lookup *lookup;
	struct frame *frame;
	struct split *split;
	double items, bytes;
	struct err bad; /* of frame or split */
	bool failed;
	struct shot *shots; /* of a burst, as the rest */
	unsigned count, left, good, most;
};

static struct loop *loop;
static struct cluster *cluster;
static struct elector *elector; /* NULL before "elect" */
static struct strmap runs;
static _Atomic double advanced;
static bool once; /* one order from the command line */

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

static double moved_clock(void *data)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	(void)data;
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + advanced;
}

static double wall_clock(void *data)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	(void)data;
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 + advanced;
}

/* One event; the functions add_… give it members. */
static struct buf line;

static void begin_event(const char *event)
{
	buf_reset(&line);
	buf_append_format(&line, "{\"event\":\"%s\"", event);
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
	buf_append_format(&line, ",\"%s\":%s", key, value ? "true" : "false");
}

/* What is no JSON goes out as a string. */
static void add_json(const char *key, struct json_slice value)
{
	if (!value.data)
		return;
	buf_append_format(&line, ",\"%s\":", key);
	if (json_validate(value.data, value.length, NULL)) {
		buf_append_json_string(&line, value.data, value.length);
		return;
	}
	size_t start = line.length;
	buf_append(&line, value.data, value.length);
	for (size_t i = start; i < line.length; i++)
		if (line.data[i] == '\n')
			line.data[i] = ' ';
}

static void add_err(const struct err *err)
{
	if (!err)
		return;
	buf_append_text(&line, ",\"err\":{\"message\":");
	buf_append_json_string(&line, err->message, strlen(err->message));
	add_text("reason", err->reason);
	add_number("code", err->code);
	if (err->retry_after >= 0)
		add_number("retry_after", err->retry_after);
	add_flag("retryable", err->retryable);
	add_flag("outcome_unknown", err->outcome_unknown);
	buf_append_char(&line, '}');
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

static void say(const char *event, const char *id)
{
	begin_event(event);
	add_text("id", id);
	end_event();
}

static void forget(struct run *run)
{
	strmap_remove(&runs, run->id, strlen(run->id));
	frame_free(run->frame);
	split_free(run->split);
	alloc_free(run->id);
	alloc_free(run->cancel_on);
	alloc_free(run->shots);
	alloc_free(run);
	if (once)
		loop_stop(loop);
}

static void cancel(struct run *run)
{
	if (run->request)
		request_cancel(run->request);
	if (run->lookup)
		discovery_cancel(run->lookup);
	for (unsigned i = 0; i < run->count; i++)
		if (run->shots[i].request)
			request_cancel(run->shots[i].request);
	say("cancelled", run->id);
	forget(run);
}

/* True when the run is gone. */
static bool cancelled_on(struct run *run, const char *event)
{
	if (!run->cancel_on || strcmp(run->cancel_on, event) != 0)
		return false;
	cancel(run);
	return true;
}

static void on_head(void *data, const struct http_head *head)
{
	struct run *run = data;
	begin_event("head");
	add_text("id", run->id);
	add_number("status", head->status);
	end_event();
	cancelled_on(run, "head");
}

static int on_frame(void *data, const struct frame_event *event, struct err *err)
{
	struct run *run = data;
	(void)err;
	begin_event("frame");
	add_text("id", run->id);
	add_number("type", event->type);
	add_json("type_text", event->type_text);
	add_json("object", event->object.bytes);
	end_event();
	return run->cancel_on && !strcmp(run->cancel_on, "frame") ? 1 : 0;
}

static int on_item(void *data, const struct outline *item, struct err *err)
{
	struct run *run = data;
	(void)item, (void)err;
	run->items++;
	return 0;
}

static void on_chunk(void *data, const char *bytes, size_t length)
{
	struct run *run = data;
	run->bytes += (double)length;
	if (run->frame && !run->failed && frame_feed(run->frame, bytes, length, &run->bad)) {
		run->failed = true;
		if (cancelled_on(run, "frame"))
			return;
	}
	if (run->split && !run->failed && split_feed(run->split, bytes, length, &run->bad))
		run->failed = true;
	cancelled_on(run, "chunk");
}

static void on_wait(void *data, const struct err *err, double seconds)
{
	struct run *run = data;
	begin_event("wait");
	add_text("id", run->id);
	add_number("seconds", seconds);
	add_err(err);
	end_event();
	cancelled_on(run, "wait");
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct run *run = data;
	run->request = NULL;
	if (!err && run->frame && !run->failed)
		run->failed = frame_finish(run->frame, &run->bad) != 0;
	if (!err && run->split && !run->failed)
		run->failed = split_finish(run->split, &run->bad) != 0;
	begin_event("done");
	add_text("id", run->id);
	add_err(err);
	add_json("body", body);
	add_json("causes", err ? status_causes(body) : (struct json_slice){NULL, 0});
	add_number("bytes", run->bytes);
	if (run->split)
		add_number("items", run->items);
	if (run->failed)
		add_text("malformed", run->bad.message);
	end_event();
	forget(run);
}

static struct run *run_new(const struct order *order)
{
	struct run *run = alloc_zero(sizeof(*run));
	const char *id = field(order, "id");
	run->id = alloc_string(id ? id : "");
	run->cancel_on = alloc_string(field(order, "cancel_on"));
	strmap_put(&runs, run->id, strlen(run->id), run);
	return run;
}

static void do_start(const struct order *order)
{
	static const struct request_events events = {on_head, on_chunk, on_wait, on_done};
	struct run *run = run_new(order);
	const char *method = field(order, "method"), *body = field(order, "body");
	if (number(order, "frames") != 0)
		run->frame = frame_new(FRAME_LIMIT, on_frame, run);
	if (number(order, "items") != 0)
		run->split = split_new(FRAME_LIMIT, on_item, run);
	struct request_options options = {.method = method ? method : "GET",
					  .path = field(order, "path"),
					  .query = field(order, "query"),
					  .accept = field(order, "accept"),
					  .content_type = field(order, "content_type"),
					  .body = body,
					  .body_length = body ? strlen(body) : 0,
					  .timeout = number(order, "timeout"),
					  .limit = (size_t)number(order, "limit"),
					  .leader = number(order, "leader") != 0,
					  .stream = run->frame || run->split || number(order, "stream") != 0,
					  .list = run->split || number(order, "list") != 0};
	run->request = request_start(cluster, &options, &events, run);
	advanced = advanced + number(order, "then_advance");
}

static void on_one_done(void *data, const struct err *err, struct json_slice body)
{
	struct shot *shot = data;
	struct run *run = shot->run;
	(void)body;
	shot->request = NULL;
	run->good += !err;
	if (cluster->running > run->most)
		run->most = cluster->running;
	if (--run->left)
		return;
	begin_event("done");
	add_text("id", run->id);
	add_number("good", run->good);
	add_number("most", run->most);
	end_event();
	forget(run);
}

static void do_burst(const struct order *order)
{
	static const struct request_events events = {.on_done = on_one_done};
	struct run *run = run_new(order);
	run->count = run->left = (unsigned)number(order, "count");
	run->shots = alloc_zero(run->count * sizeof(*run->shots));
	struct request_options options = {
	    .method = "GET", .path = field(order, "path"), .timeout = number(order, "timeout")};
	for (unsigned i = 0; i < run->count; i++) {
		run->shots[i].run = run;
		run->shots[i].request = request_start(cluster, &options, &events, &run->shots[i]);
	}
	run->most = cluster->running;
}

static void add_resource(const struct resource *resource)
{
	if (!resource)
		return;
	struct buf name;
	buf_init(&name, 0);
	resource_name(resource, &name);
	add_text("api_version", resource->api_version);
	add_text("kind", resource->kind);
	add_text("plural", resource->plural);
	add_text("name", buf_text(&name));
	add_flag("namespaced", resource->namespaced);
	add_flag("watchable", resource->watchable);
	buf_fini(&name);
}

static void on_found(void *data, const struct resource *resource, const struct err *err)
{
	struct run *run = data;
	run->lookup = NULL;
	begin_event("found");
	add_text("id", run->id);
	add_resource(resource);
	add_err(err);
	end_event();
	forget(run);
}

static void do_find(const struct order *order)
{
	struct run *run = run_new(order);
	run->lookup = discovery_find(cluster->discovery, field(order, "api_version"), field(order, "kind"),
				     field(order, "plural"), on_found, run);
}

static void do_known(const struct order *order)
{
	begin_event("known");
	add_resource(discovery_known(cluster->discovery, field(order, "api_version"), field(order, "kind"),
				     field(order, "plural")));
	end_event();
}

static void do_forget(const struct order *order)
{
	discovery_forget(cluster->discovery, field(order, "api_version"));
}

static void do_cancel(const struct order *order)
{
	const char *id = field(order, "id");
	struct run *run = id ? strmap_get(&runs, id, strlen(id)) : NULL;
	if (run)
		cancel(run);
}

static void do_advance(const struct order *order)
{
	advanced = advanced + number(order, "seconds");
}

static void on_leading(void *data)
{
	say("leading", data);
}

static void on_lost(void *data, const char *why)
{
	begin_event("lost");
	add_text("id", data);
	add_text("why", why);
	end_event();
}

static void on_stopped(void *data)
{
	say("stopped", data);
}

static void do_elect(const struct order *order)
{
	static const struct elector_events events = {on_leading, on_lost, on_stopped};
	struct elector_options options = {.namespace = field(order, "namespace"),
					  .name = field(order, "name"),
					  .lease_duration = number(order, "duration"),
					  .renew_deadline = number(order, "deadline"),
					  .retry_period = number(order, "retry")};
	elector = elector_new(cluster, &options, &events, NULL);
	elector_start(elector);
}

static void do_resign(const struct order *order)
{
	(void)order;
	elector_stop(elector);
}

static void do_election(const struct order *order)
{
	(void)order;
	begin_event("election");
	add_text("identity", elector_identity(elector));
	add_text("holder", elector_holder(elector));
	add_flag("leading", elector_is_leading(elector));
	end_event();
}

static void do_quit(const struct order *order)
{
	(void)order;
	size_t cursor = 0;
	void *value;
	while (strmap_next(&runs, &cursor, NULL, NULL, &value)) {
		cancel(value);
		cursor = 0;
	}
	elector_free(elector);
	loop_stop(loop);
}

static const struct {
	const char *verb;
	void (*run)(const struct order *order);
} verbs[] = {
    {"start", do_start}, {"burst", do_burst},   {"cancel", do_cancel},     {"find", do_find},
    {"known", do_known}, {"forget", do_forget}, {"advance", do_advance},   {"quit", do_quit},
    {"elect", do_elect}, {"resign", do_resign}, {"election", do_election},
};

static void carry_out(void *data)
{
	const struct order *order = data;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].verb, order->verb)) {
			verbs[i].run(order);
			say("ok", NULL);
			return;
		}
	say("bad", NULL);
	if (once)
		loop_stop(loop);
}

static void add_field(struct order *order, char *word)
{
	if (order->count == MAX_FIELDS)
		return;
	order->keys[order->count] = strsep(&word, "=");
	order->values[order->count++] = word ? word : "";
}

static void parse(struct order *order, char *text)
{
	*order = (struct order){.verb = strsep(&text, "\t")};
	for (char *word; (word = strsep(&text, "\t"));)
		add_field(order, word);
}

static void *read_orders(void *data)
{
	(void)data;
	char *text = NULL;
	size_t room = 0;
	for (ssize_t length; (length = getline(&text, &room, stdin)) > 0;) {
		if (text[length - 1] == '\n')
			text[length - 1] = '\0';
		struct order order;
		parse(&order, text);
		bool last = !strcmp(order.verb, "quit");
		loop_call(loop, carry_out, &order, 3600);
		if (last)
			break;
	}
	if (feof(stdin))
		loop_call(loop, carry_out, &(struct order){.verb = "quit"}, 3600);
	free(text);
	return NULL;
}

static void run_once(char **words)
{
	struct order order = {.verb = *words++};
	for (; *words; words++)
		add_field(&order, *words);
	once = true;
	carry_out(&order);
	if (runs.count)
		loop_run(loop);
}

static void run_from_stdin(void)
{
	pthread_t reader;
	pthread_create(&reader, NULL, read_orders, NULL);
	loop_run(loop);
	pthread_join(reader, NULL);
}

static struct cluster *connect_to(const struct config_options *options, struct err *err)
{
	struct config *config = config_load(options, err);
	struct cluster *made = config ? cluster_new(loop, config, err) : NULL;
	if (!made)
		return NULL;
	begin_event("ready");
	add_text("source", config->source);
	add_text("context", config->context);
	add_text("server", config->server);
	add_text("namespace", config->namespace);
	add_flag("in_cluster", config->in_cluster);
	end_event();
	return made;
}

static int parse_options(int argc, char **argv, struct config_options *options, bool *dry_run)
{
	static const struct option known[] = {{"kubeconfig", required_argument, NULL, 'k'},
					      {"context", required_argument, NULL, 'c'},
					      {"namespace", required_argument, NULL, 'n'},
					      {"dry-run", no_argument, NULL, 'd'},
					      {NULL, 0, NULL, 0}};
	for (int c; (c = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
		switch (c) {
		case 'k':
			options->kubeconfig = optarg;
			break;
		case 'c':
			options->context = optarg;
			break;
		case 'n':
			options->namespace = optarg;
			break;
		case 'd':
			*dry_run = true;
			break;
		default:
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct config_options options = {0};
	struct err err;
	bool dry_run = false;
	if (parse_options(argc, argv, &options, &dry_run))
		return 2;
	clock_replace(moved_clock, wall_clock, NULL);
	strmap_init(&runs);
	loop = loop_new(&err);
	cluster = loop ? connect_to(&options, &err) : NULL;
	if (cluster) {
		cluster->dry_run = dry_run;
		if (argv[optind])
			run_once(argv + optind);
		else
			run_from_stdin();
	} else {
		begin_event("fatal");
		add_err(&err);
		end_event();
	}
	cluster_free(cluster);
	strmap_fini(&runs);
	if (loop)
		loop_free(loop);
	begin_event("end");
	add_number("live", (double)alloc_live(stderr));
	end_event();
	buf_fini(&line);
	return 0;
}
