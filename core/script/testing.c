#include "script/testing.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/cluster.h"
#include "net/exchange.h"
#include "net/http.h"
#include "script/host_private.h"
#include "script/sandbox.h"

ALLOC_TYPE(testing_type, "testing cluster");
ALLOC_TYPE(program_type, "program under test");

#define LOGS_LIMIT ((size_t)8 << 20)
#define MOST_NAMED 5 /* of the requests that an error names */

struct testing_program {
	struct list node;
	struct host *host;
	char *namespace, **settings; /* which the host borrows */
};

struct testing {
	struct loop *loop;
	struct host *specs;
	struct sandbox *sandbox; /* NULL before the first cluster; kept for the next */
	unsigned generations;
	bool open;
	struct list programs;
	struct buf answer; /* of the sandbox */
	struct buf logs;   /* "[{…},{…}"; grows to LOGS_LIMIT */

	/* a move; on_done NULL: none */
	double until;              /* clock_now's scale */
	double patience, deadline; /* the latter on clock_real's scale */
	void (*on_done)(void *data, const struct err *err);
	void *data;
	struct err err;
	struct loop_job done;
};

/* --- what is under way --- */

struct traffic {
	const struct exchange *exchange;
	size_t at_rest, moving;
	struct buf *names; /* of the moving ones; may be NULL */
};

static void look_at(void *data, const struct http_progress *progress)
{
	struct traffic *traffic = data;
	if (exchange_is_at_rest(traffic->exchange, progress->local_port, progress->headed, progress->received)) {
		traffic->at_rest++;
		return;
	}
	if (traffic->names && traffic->moving < MOST_NAMED)
		buf_append_format(traffic->names, "%s%s", traffic->moving ? ", " : "", progress->url);
	traffic->moving++;
}

static struct traffic look(struct testing *testing, struct buf *names)
{
	struct traffic traffic = {.exchange = sandbox_exchange(testing->sandbox), .names = names};
	LIST_EACH (&testing->programs, node) {
		struct host *host = LIST_ENTRY(node, struct testing_program, node)->host;
		struct cluster *cluster = host_cluster(host);
		http_each(cluster->calls, look_at, &traffic);
		http_each(cluster->watches, look_at, &traffic);
		http_each(host_outside(host), look_at, &traffic);
	}
	return traffic;
}

/* As many requests at the sandbox as at the programs: else one has not come there, or its end has not. */
static bool is_settled(struct testing *testing)
{
	if (!loop_is_at_rest(testing->loop))
		return false;
	struct traffic traffic = look(testing, NULL);
	return !traffic.moving && traffic.at_rest == exchange_count(traffic.exchange);
}

static void explain(struct testing *testing, struct err *err)
{
	struct buf names;
	buf_init(&names, 0);
	struct traffic traffic = look(testing, &names);
	size_t held = exchange_count(traffic.exchange);
	if (!loop_is_at_rest(testing->loop))
		err_set(err, "Timeout",
			"after %g s there is still something to do at once: does a script sleep for no "
			"time, or answer its own events?",
			testing->patience);
	else if (traffic.moving)
		err_set(err, "Timeout", "after %g s %zu requests are still under way: %s", testing->patience,
			traffic.moving, buf_text(&names));
	else
		err_set(err, "Timeout", "after %g s the sandbox still holds %zu requests that their clients have ended",
			testing->patience, held - traffic.at_rest);
	buf_fini(&names);
}

/* --- moving --- */

static void end_move(struct testing *testing)
{
	loop_on_turn(testing->loop, NULL, NULL);
	loop_post(testing->loop, &testing->done);
}

static void on_done(void *data)
{
	struct testing *testing = data;
	void (*tell)(void *, const struct err *) = testing->on_done;
	struct err err = testing->err;
	testing->on_done = NULL;
	if (tell)
		tell(testing->data, *err.message ? &err : NULL);
}

static void step(struct testing *testing)
{
	double next = loop_next_timer(testing->loop);
	clock_set(fmin(next, testing->until));
	testing->deadline = clock_real() + testing->patience;
	if (next > testing->until)
		end_move(testing);
}

static void on_turn(void *data)
{
	struct testing *testing = data;
	if (is_settled(testing)) {
		step(testing);
	} else if (clock_real() > testing->deadline) {
		explain(testing, &testing->err);
		end_move(testing);
	}
}

void testing_move(struct testing *testing, double seconds, double patience,
		  void (*on_done_fn)(void *data, const struct err *err), void *data)
{
	testing->until = clock_now() + seconds;
	testing->patience = patience;
	testing->deadline = clock_real() + patience;
	testing->on_done = on_done_fn;
	testing->data = data;
	err_clear(&testing->err);
	loop_on_turn(testing->loop, on_turn, testing);
}

void testing_forget_move(struct testing *testing)
{
	testing->on_done = NULL;
	loop_on_turn(testing->loop, NULL, NULL);
	loop_job_cancel(&testing->done);
}

bool testing_is_moving(const struct testing *testing)
{
	return testing->on_done != NULL;
}

/* --- programs --- */

static char **copy_texts(const char *const *texts)
{
	size_t count = 0;
	if (!texts)
		return NULL;
	while (texts[count])
		count++;
	char **copy = alloc_zero((count + 1) * sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = alloc_string(texts[i]);
	return copy;
}

static void program_free(struct testing_program *program)
{
	list_remove(&program->node);
	host_free(program->host);
	for (char **text = program->settings; text && *text; text++)
		alloc_free(*text);
	alloc_free(program->settings);
	alloc_free(program->namespace);
	alloc_object_free(&program_type, program);
}

static struct host *make_host(const struct testing *testing, const struct testing_program *program, struct err *err)
{
	struct host_options options = *host_get_options(testing->specs);
	struct config_options config = {.kubeconfig = sandbox_kubeconfig(testing->sandbox),
					.namespace = program->namespace};
	options.config = config_load(&config, err);
	if (!options.config)
		return NULL;
	options.namespace = program->namespace;
	if (program->settings)
		options.settings = (const char *const *)program->settings;
	options.sync_timeout = 0; /* its end would be that of the loop */
	return host_new(testing->loop, &options, err);
}

struct testing_program *testing_load(struct testing *testing, const struct testing_load *load, struct err *err)
{
	struct testing_program *program = alloc_object(&program_type, sizeof(*program));
	list_init(&program->node);
	program->namespace = alloc_string(load->namespace);
	program->settings = copy_texts(load->settings);
	program->host = make_host(testing, program, err);
	if (!program->host || host_load(program->host, load->path, err)) {
		program_free(program);
		return NULL;
	}
	list_add_tail(&testing->programs, &program->node);
	host_start(program->host);
	return program;
}

void testing_kill(struct testing_program *program)
{
	program_free(program);
}

void testing_reload(struct testing_program *program)
{
	host_reload(program->host, true, NULL, NULL);
}

/* --- logs --- */

static void on_line(void *data, const char *line, size_t length)
{
	struct buf *logs = &((struct testing *)data)->logs;
	if (logs->length + length > LOGS_LIMIT)
		return;
	buf_append_char(logs, logs->length ? ',' : '[');
	buf_append(logs, line, length - 1);
}

struct json_slice testing_logs(struct testing *testing)
{
	struct buf *logs = &testing->logs;
	if (!logs->length)
		return (struct json_slice){"[]", 2};
	buf_append_text(logs, "]");
	logs->length--; /* the next line goes on from here */
	return (struct json_slice){logs->data, logs->length + 1};
}

/* --- making and freeing --- */

struct testing *testing_new(struct host *host)
{
	struct testing *testing = alloc_object(&testing_type, sizeof(*testing));
	testing->loop = host_loop(host);
	testing->specs = host;
	list_init(&testing->programs);
	loop_job_init(&testing->done, on_done, testing);
	buf_init(&testing->answer, 0);
	buf_init(&testing->logs, 0);
	return testing;
}

void testing_free(struct testing *testing)
{
	testing_close(testing);
	testing_forget_move(testing);
	sandbox_free(testing->sandbox);
	buf_fini(&testing->answer);
	buf_fini(&testing->logs);
	alloc_object_free(&testing_type, testing);
}

static int start_sandbox(struct testing *testing, const char *const *manifests, struct err *err)
{
	struct sandbox_options options = {.address = "127.0.0.1:0", .manifests = manifests};
	if (testing->sandbox)
		return sandbox_restart(testing->sandbox, &options, err);
	testing->sandbox = sandbox_new(testing->loop, &options, err);
	return testing->sandbox ? 0 : -1;
}

int testing_open(struct testing *testing, const char *const *manifests, bool quiet, struct err *err)
{
	clock_stop();
	if (start_sandbox(testing, manifests, err)) {
		clock_go();
		return -1;
	}
	buf_reset(&testing->logs);
	log_tap(on_line, testing, quiet ? LOG_NOTHING : LOG_ERROR);
	testing->open = true;
	testing->generations++;
	return 0;
}

void testing_close(struct testing *testing)
{
	if (!testing->open)
		return;
	testing->open = false;
	while (!list_is_empty(&testing->programs))
		testing_kill(LIST_ENTRY(testing->programs.next, struct testing_program, node));
	log_tap(NULL, NULL, LOG_DEBUG);
	clock_go();
	if (testing_is_moving(testing)) {
		err_set(&testing->err, "", "the cluster was closed");
		end_move(testing);
	}
}

unsigned testing_generation(const struct testing *testing)
{
	return testing->open ? testing->generations : 0;
}

int testing_ask(struct testing *testing, const char *name, struct json_slice text, struct json_slice *answer,
		struct err *err)
{
	buf_reset(&testing->answer);
	if (sandbox_ask(testing->sandbox, name, text, &testing->answer, err))
		return -1;
	*answer = (struct json_slice){testing->answer.length ? testing->answer.data : NULL, testing->answer.length};
	return 0;
}
