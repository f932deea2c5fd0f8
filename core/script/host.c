#include "script/host_private.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cache/applied.h"
#include "cache/census.h"
#include "kube/cluster.h"
#include "net/loop.h"
#include "net/mux.h"
#include "script/leadership.h"
#include "script/reconciler.h"
#include "script/reload.h"
#include "script/script.h"
#include "script/tally.h"

ALLOC_TYPE(host_type, "host");

enum phase { HOST_LOADING, HOST_WAITING, HOST_OPEN, HOST_ENDING, HOST_ENDED };

struct host {
	struct host_options options;
	struct loop *loop;
	struct cluster *cluster;
	struct mux *outside;
	struct pool *pool;
	struct applied *applied;
	struct metric_registry *metrics;
	struct census *census;
	struct tally *tally;
	struct reload *reload;
	struct leadership *leadership; /* NULL without leader election */
	bool left;                     /* it has ended */
	struct list scripts;
	struct barrier *barrier; /* from host_start on */
	struct loop_timer grace;
	struct loop_job settle;
	struct loop_job drop;
	struct barrier *dropped; /* by drop, or by host_free */
	enum phase phase;
	int exit_code;
};

const struct host_options *host_get_options(const struct host *host)
{
	return &host->options;
}

struct loop *host_loop(const struct host *host)
{
	return host->loop;
}

struct cluster *host_cluster(const struct host *host)
{
	return host->options.config ? host->cluster : NULL;
}

struct mux *host_outside(const struct host *host)
{
	return host->outside;
}

struct pool *host_pool(struct host *host)
{
	return host->pool;
}

struct applied *host_applied(const struct host *host)
{
	return host->applied;
}

struct metric_registry *host_metrics(struct host *host)
{
	return host->metrics;
}

struct tally *host_tally(const struct host *host)
{
	return host->tally;
}

bool host_is_ready(const struct host *host)
{
	return host->phase == HOST_OPEN;
}

bool host_is_leader(const struct host *host)
{
	return !host->leadership || leadership_holds(host->leadership);
}

void host_describe_leadership(const struct host *host, struct buf *out)
{
	if (host->leadership)
		leadership_describe(host->leadership, out);
	else
		buf_append_text(out, "null");
}

int host_exit_code(const struct host *host)
{
	return host->exit_code;
}

void host_set_exit_code(struct host *host, int code)
{
	host->exit_code = code;
}

struct list *host_scripts(struct host *host)
{
	return &host->scripts;
}

const char *host_only_script(struct host *host)
{
	struct list *first = host->scripts.next;
	bool only = !list_is_empty(&host->scripts) && first->next == &host->scripts;
	return only ? LIST_ENTRY(first, struct script, node)->name : NULL;
}

/* --- the end --- */

static bool is_idle(const struct host *host)
{
	LIST_EACH (&host->scripts, node)
		if (!script_is_idle(LIST_ENTRY(node, struct script, node)))
			return false;
	return reload_is_idle(host->reload);
}

struct reconciler *host_find_leaving(const struct host *host, const char *name)
{
	struct reconciler *found = reload_find_old(host->reload, name);
	LIST_EACH (&host->scripts, node) {
		const struct script *script = LIST_ENTRY(node, struct script, node);
		if (!found && script->gone)
			found = reconciler_find_in(script, name);
	}
	return found;
}

struct reconciler *host_find_coming(const struct host *host, const char *name)
{
	return reload_find_next(host->reload, name);
}

static void each_script(struct host *host, void (*fn)(struct script *script))
{
	LIST_EACH (&host->scripts, node)
		fn(LIST_ENTRY(node, struct script, node));
	reload_each_old(host->reload, fn);
}

static void cancel_calls(struct host *host)
{
	each_script(host, script_cancel);
}

/* A lease is given back only when nothing runs any more, since the next leader begins at once. */
static void finish(struct host *host)
{
	host->phase = HOST_ENDED;
	loop_timer_stop(host->loop, &host->grace);
	if (!host->leadership || host->left) {
		loop_stop(host->loop);
		return;
	}
	cancel_calls(host);
	leadership_leave(host->leadership);
}

void host_left_election(struct host *host)
{
	host->left = true;
	if (host->phase == HOST_ENDED)
		loop_stop(host->loop);
}

void host_lost_leadership(struct host *host)
{
	host->exit_code = EXIT_LOST_LEADERSHIP;
	host->left = true;
	reload_stop(host->reload); /* a swap would run what the code before wants done at its end */
	cancel_calls(host);
	finish(host);
}

static void on_settle(void *data)
{
	struct host *host = data;
	if (host->phase == HOST_ENDING && is_idle(host))
		finish(host);
}

void host_settled(struct host *host)
{
	if (host->phase == HOST_ENDED)
		return; /* host_free cancels calls after it has freed what looks at them */
	if (host->phase == HOST_ENDING)
		loop_post(host->loop, &host->settle);
	reload_settled(host->reload);
}

static void tell_running(struct script *script)
{
	if (!script_is_idle(script))
		log_warn(LOG_FIELDS({"script", script->name}),
			 "%u calls were still running after %g s and are cancelled (--grace-period)", script->tasks,
			 host_get_options(script->host)->grace_period);
}

static void on_grace_over(void *data)
{
	struct host *host = data;
	each_script(host, tell_running);
	finish(host);
}

static void free_dropped(void *data)
{
	struct host *host = data;
	barrier_free(host->dropped);
	host->dropped = NULL;
}

/* Nobody waits at the barrier any more, so it says no more who is late. This may run inside a call that it made. */
static void drop_barrier(struct host *host)
{
	if (!host->barrier)
		return;
	host->dropped = host->barrier;
	host->barrier = NULL;
	loop_post(host->loop, &host->drop);
}

void host_stop(struct host *host)
{
	if (host->phase >= HOST_ENDING)
		return;
	log_info(NULL, "stopping");
	host->phase = HOST_ENDING;
	reload_stop(host->reload);
	drop_barrier(host);
	if (!host_is_leader(host))
		leadership_leave(host->leadership); /* so that it does not become the leader meanwhile */
	LIST_EACH (&host->scripts, node)
		script_shutdown(LIST_ENTRY(node, struct script, node));
	loop_timer_start(host->loop, &host->grace, host->options.grace_period);
	loop_post(host->loop, &host->settle);
}

void host_specs_ended(struct host *host, const struct err *err)
{
	if (err)
		host->exit_code = EXIT_FAILED;
	host_stop(host);
}

/* --- the barrier --- */

static void open_scripts(struct host *host)
{
	host->phase = HOST_OPEN;
	LIST_EACH (&host->scripts, node)
		script_opened(LIST_ENTRY(node, struct script, node));
	if (host->leadership)
		leadership_start(host->leadership);
	reload_settled(host->reload);
}

static void on_barrier(void *data, enum barrier_outcome outcome)
{
	struct host *host = data;
	if (host->phase != HOST_WAITING)
		return;
	if (outcome == BARRIER_OPEN) {
		open_scripts(host);
		return;
	}
	host->exit_code = EXIT_NOT_SYNCED;
	finish(host);
}

void host_start(struct host *host)
{
	host->phase = HOST_WAITING;
	struct barrier_options options = {
	    .patience = host->options.sync_timeout, .announce = true, .on_done = on_barrier, .data = host};
	host->barrier = barrier_new(host->loop, &options);
	LIST_EACH (&host->scripts, node)
		if (host->phase == HOST_WAITING)
			script_start(LIST_ENTRY(node, struct script, node), host->barrier);
	if (host->phase == HOST_WAITING)
		barrier_start(host->barrier);
}

/* --- loading --- */

int host_load(struct host *host, const char *path, struct err *err)
{
	return reload_add_path(host->reload, path, err);
}

int host_load_specs(struct host *host, const char *const *arguments, size_t count, struct err *err)
{
	struct script *script = script_new_specs(host, arguments, count, err);
	if (!script)
		return -1;
	list_add_tail(&host->scripts, &script->node);
	return 0;
}

void host_reload(struct host *host, bool forced, host_reload_fn on_done, void *data)
{
	reload_start(host->reload, forced, on_done, data);
}

/* --- making and freeing --- */

/* Without a cluster scripts can still register: their informers then belong to one that is never connected to. */
struct host *host_new(struct loop *loop, const struct host_options *options, struct err *err)
{
	struct cluster *cluster = cluster_new(loop, options->config ? options->config : config_none(), err);
	if (!cluster)
		return NULL;
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what a script prints is read while it runs, through a pipe too */
	struct host *host = alloc_object(&host_type, sizeof(*host));
	host->options = *options;
	host->loop = loop;
	host->cluster = cluster;
	cluster->dry_run = options->dry_run;
	host->outside = mux_new(loop, &(struct mux_options){.max_streams = 100, .max_connections = 100});
	host->pool = pool_new(cluster);
	host->applied = applied_new(APPLIED_BYTES);
	host->metrics = metric_registry_new();
	host->census = census_new(host->metrics, host->pool);
	host->tally = tally_new(host->metrics, host);
	host->reload = reload_new(host);
	cluster->meter = meter_new(host->metrics, cluster->config->server);
	if (options->election)
		host->leadership = leadership_new(host, options->election);
	list_init(&host->scripts);
	loop_timer_init(&host->grace, on_grace_over, host);
	loop_job_init(&host->settle, on_settle, host);
	loop_job_init(&host->drop, free_dropped, host);
	return host;
}

void host_free(struct host *host)
{
	if (!host)
		return;
	host->phase = HOST_ENDED;
	loop_timer_stop(host->loop, &host->grace);
	reload_free(host->reload);
	while (!list_is_empty(&host->scripts))
		script_free(LIST_ENTRY(host->scripts.next, struct script, node));
	barrier_free(host->barrier);
	loop_job_cancel(&host->drop);
	free_dropped(host);
	loop_job_cancel(&host->settle);
	leadership_free(host->leadership);
	tally_free(host->tally);
	census_free(host->census);
	pool_free(host->pool);
	applied_free(host->applied);
	cluster_free(host->cluster);
	mux_free(host->outside);
	metric_registry_free(host->metrics);
	alloc_object_free(&host_type, host);
}
