#include "script/reload.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strmap.h"
#include "script/bind.h"
#include "script/host_private.h"
#include "script/load.h"
#include "script/reconciler.h"
#include "script/script.h"

ALLOC_TYPE(reload_type, "reload");
ALLOC_TYPE(change_type, "change of a script");
ALLOC_TYPE(ending_type, "script that ends");
ALLOC_TYPE(ask_type, "reload that was asked for");

enum { RELOADS, FAILURES, FAMILIES };
static const struct metric_definition table[FAMILIES] = {
    [RELOADS] = {.type = METRIC_COUNTER,
		 .name = "perilune_script_reload_total",
		 .help = "Generations of the script that took the place of the one before.",
		 .labels = {"script"}},
    [FAILURES] = {.type = METRIC_COUNTER,
		  .name = "perilune_script_reload_failures_total",
		  .help =
		      "Generations of the script that were dropped, since they did not load or their caches did not "
		      "sync.",
		  .labels = {"script"}},
};

/* One script that is on its way to another generation. */
struct change {
	struct list node; /* in reload->changes */
	struct reload *reload;
	struct script *old;  /* in the host's list; NULL: it is new there */
	struct script *next; /* NULL: it is gone from there */
	struct barrier *barrier;
	bool synced, late; /* the barrier has opened, or given up */
	bool closed;       /* old takes in nothing new */
	struct loop_timer drain;
	struct loop_job job;
};

/* A script that has lost its place. */
struct ending {
	struct list node; /* in reload->endings */
	struct reload *reload;
	struct script *script;
	struct loop_timer timer;
};

/* Somebody who waits for the outcome. */
struct ask {
	struct list node;
	host_reload_fn on_done;
	void *data;
	bool forced;
};

struct reload {
	struct host *host;
	struct loop *loop;
	char **paths;
	size_t path_count;
	struct list asks, served; /* struct ask: for the next one, and for the one under way */
	struct list changes, endings;
	struct host_reload outcome;
	bool running, stopped;
	struct loop_job look;
	struct metric_family *families[FAMILIES];
};

/* --- what is told --- */

static void count(struct reload *reload, int family, const char *script)
{
	metric_add(metric_keep(reload->families[family], &script), 1);
}

static void note_failure(struct reload *reload, const char *script, const struct err *err)
{
	char place[256];
	log_error(LOG_FIELDS({"script", script}, {"file", script_error_place(err, place, sizeof(place))},
			     {"error", err->message}),
		  "reload failed, the code before goes on");
	if (!reload->outcome.failed++)
		reload->outcome.err = *err;
	count(reload, FAILURES, script);
}

static void finish_asks(struct reload *reload)
{
	struct host_reload outcome = reload->outcome;
	for (struct list *node; (node = list_pop(&reload->served));) {
		struct ask ask = *LIST_ENTRY(node, struct ask, node);
		alloc_object_free(&ask_type, LIST_ENTRY(node, struct ask, node));
		if (ask.on_done)
			ask.on_done(ask.data, &outcome);
	}
}

/* --- the old --- */

static bool trim(void *data, double until)
{
	(void)data, (void)until;
	alloc_trim();
	return true;
}

/* What a generation took lies between what stays, and would add up, reload by reload. */
static void free_ending(struct ending *ending)
{
	struct loop *loop = ending->reload->loop;
	list_remove(&ending->node);
	loop_timer_stop(loop, &ending->timer);
	script_free(ending->script);
	alloc_object_free(&ending_type, ending);
	loop_free_slowly(loop, trim, NULL); /* behind what the script has put off */
}

static void on_end_over(void *data)
{
	struct ending *ending = data;
	const struct script *script = ending->script;
	log_warn(LOG_FIELDS({"script", script->name}),
		 "%u calls of the code before were still running after %g s and are cancelled", script->tasks,
		 RELOAD_END);
	free_ending(ending);
}

static void end_script(struct reload *reload, struct script *script)
{
	struct ending *ending = alloc_object(&ending_type, sizeof(*ending));
	size_t left = script_depth(script);
	if (left)
		log_warn(LOG_FIELDS({"script", script->name}),
			 "%zu events were not told to the code before within %g s and are dropped", left, RELOAD_DRAIN);
	list_remove(&script->node);
	ending->reload = reload;
	ending->script = script;
	loop_timer_init(&ending->timer, on_end_over, ending);
	loop_timer_start(reload->loop, &ending->timer, RELOAD_END);
	list_add_tail(&reload->endings, &ending->node);
	script_shutdown(script);
	reload_settled(reload);
}

/* --- one change --- */

static void free_change(struct change *change)
{
	list_remove(&change->node);
	loop_timer_stop(change->reload->loop, &change->drain);
	loop_job_cancel(&change->job);
	barrier_free(change->barrier);
	script_free(change->next);
	alloc_object_free(&change_type, change);
}

/* The new one stands where the old one stood. */
static void put_in_place(struct change *change)
{
	struct list *scripts = host_scripts(change->reload->host);
	list_add_tail(change->old ? &change->old->node : scripts, &change->next->node);
}

static void hand_on_state(struct change *change)
{
	struct err err;
	if (bind_state_copy(change->old, change->next, &err))
		log_error(LOG_FIELDS({"script", change->old->name}, {"error", err.message}),
			  "k8s.state can't be handed on: what it has got since the load is lost");
}

static void log_change(const struct change *change)
{
	const struct script *script = change->next ? change->next : change->old;
	char generation[16];
	snprintf(generation, sizeof(generation), "%u", script->generation);
	log_info(LOG_FIELDS({"script", script->name}, {"generation", change->next ? generation : NULL}),
		 !change->next ? "the script is gone, it ends"
		 : change->old ? "reloaded"
			       : "a new script begins");
}

static void swap(struct change *change)
{
	struct reload *reload = change->reload;
	struct script *old = change->old, *next = change->next;
	log_change(change);
	if (old && next)
		hand_on_state(change);
	if (next) {
		put_in_place(change);
		change->next = NULL;
		script_opened(next);
		count(reload, RELOADS, next->name);
	}
	if (old)
		end_script(reload, old);
	*(next ? old ? &reload->outcome.replaced : &reload->outcome.started : &reload->outcome.stopped) += 1;
	free_change(change);
}

static void on_drain_over(void *data)
{
	swap(data);
}

static void close_old(struct change *change)
{
	change->closed = true;
	if (!change->old)
		return;
	script_close(change->old);
	loop_timer_start(change->reload->loop, &change->drain, RELOAD_DRAIN);
}

static void give_up(struct change *change)
{
	struct err err;
	struct buf late;
	buf_init(&late, 0);
	barrier_late(change->barrier, &late);
	err_set(&err, "Timeout", "its caches did not sync in time: %s", buf_text(&late));
	buf_fini(&late);
	note_failure(change->reload, change->next->name, &err);
	free_change(change);
}

static void on_change_job(void *data)
{
	struct change *change = data;
	struct reload *reload = change->reload;
	if (change->late)
		give_up(change);
	reload_settled(reload);
}

static void on_barrier(void *data, enum barrier_outcome outcome)
{
	struct change *change = data;
	change->late = outcome == BARRIER_LATE;
	change->synced = !change->late;
	loop_post(change->reload->loop, &change->job);
}

/* What is there already is no news to the log. */
static void start_next(struct change *change)
{
	struct reload *reload = change->reload;
	struct barrier_options options = {.patience = host_get_options(reload->host)->sync_timeout,
					  .announce = !script_has_synced(change->next),
					  .on_done = on_barrier,
					  .data = change};
	change->barrier = barrier_new(reload->loop, &options);
	script_start(change->next, change->barrier);
	barrier_start(change->barrier);
}

static struct change *add_change(struct reload *reload, struct script *old, struct script *next)
{
	struct change *change = alloc_object(&change_type, sizeof(*change));
	change->reload = reload;
	change->old = old;
	change->next = next;
	loop_timer_init(&change->drain, on_drain_over, change);
	loop_job_init(&change->job, on_change_job, change);
	list_add_tail(&reload->changes, &change->node);
	return change;
}

/* --- one reload: what is found at the paths, against the host's scripts --- */

static struct script *script_at(struct reload *reload, const char *path)
{
	LIST_EACH (host_scripts(reload->host), node) {
		struct script *script = LIST_ENTRY(node, struct script, node);
		if (!strcmp(script->path, path))
			return script;
	}
	return NULL;
}

static void load_next(struct reload *reload, struct script *old, const char *name, const char *path, const char *folder)
{
	struct err err;
	struct script *next = script_new(reload->host, name, path, folder, old, &err);
	if (next)
		start_next(add_change(reload, old, next));
	else
		note_failure(reload, name, &err);
}

struct sweep {
	struct reload *reload;
	bool forced;
	struct strmap found; /* paths */
};

static int on_found(void *data, const char *name, const char *path, const char *folder, struct err *err)
{
	(void)name, (void)folder, (void)err;
	struct sweep *sweep = data;
	strmap_put(&sweep->found, path, strlen(path), sweep);
	return 0;
}

/* It waits for its caches since an earlier look, or the paths lead to it twice. */
static bool is_changing(const struct reload *reload, const char *path)
{
	LIST_EACH (&reload->changes, node) {
		const struct change *change = LIST_ENTRY(node, struct change, node);
		if (!strcmp((change->next ? change->next : change->old)->path, path))
			return true;
	}
	return false;
}

static int load_found(void *data, const char *name, const char *path, const char *folder, struct err *err)
{
	(void)err;
	const struct sweep *sweep = data;
	struct script *old = script_at(sweep->reload, path);
	if (is_changing(sweep->reload, path))
		return 0;
	if (!old || sweep->forced || files_have_changed(&old->files))
		load_next(sweep->reload, old, name, path, folder);
	return 0;
}

static bool is_under(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	while (length > 1 && folder[length - 1] == '/')
		length--;
	return !strncmp(path, folder, length) && (path[length] == '/' || path[length] == '\0');
}

/* What can't be read is no word that the scripts are gone. */
static void keep_all(struct sweep *sweep, const char *path, const struct err *err)
{
	note_failure(sweep->reload, path, err);
	LIST_EACH (host_scripts(sweep->reload->host), node) {
		const char *script = LIST_ENTRY(node, struct script, node)->path;
		if (is_under(script, path))
			strmap_put(&sweep->found, script, strlen(script), sweep);
	}
}

static bool is_gone(const struct sweep *sweep, const struct script *script)
{
	return !strmap_get(&sweep->found, script->path, strlen(script->path));
}

/* New code that still waits for its caches. Its old one would else be in two changes. */
static void drop_gone(const struct sweep *sweep)
{
	LIST_EACH (&sweep->reload->changes, node) {
		struct change *change = LIST_ENTRY(node, struct change, node);
		if (is_gone(sweep, change->next))
			free_change(change);
	}
}

static void end_gone(const struct sweep *sweep)
{
	drop_gone(sweep);
	LIST_EACH (host_scripts(sweep->reload->host), node) {
		struct script *script = LIST_ENTRY(node, struct script, node);
		script->gone = is_gone(sweep, script);
		if (script->gone)
			close_old(add_change(sweep->reload, script, NULL));
	}
}

/* Those that are gone are known before any is loaded: what they had is free for the others. */
static void look_at_paths(struct sweep *sweep)
{
	struct reload *reload = sweep->reload;
	struct err err;
	for (size_t i = 0; i < reload->path_count; i++)
		if (load_find(reload->paths[i], on_found, sweep, &err))
			keep_all(sweep, reload->paths[i], &err);
	end_gone(sweep);
	for (size_t i = 0; i < reload->path_count; i++)
		load_find(reload->paths[i], load_found, sweep, &err);
}

static void begin(struct reload *reload)
{
	struct sweep sweep = {.reload = reload};
	strmap_init(&sweep.found);
	if (!reload->running)
		memset(&reload->outcome, 0, sizeof(reload->outcome));
	reload->running = true;
	LIST_EACH (&reload->asks, node)
		sweep.forced |= LIST_ENTRY(node, struct ask, node)->forced;
	list_move(&reload->served, &reload->asks);
	look_at_paths(&sweep);
	strmap_fini(&sweep.found);
	reload_settled(reload);
}

/* --- its course --- */

/* It is no better than one that does not load: the old one is still whole. */
static void drop_parked(struct change *change)
{
	struct err err;
	err_set(&err, "", "%s", change->next->state->parked);
	note_failure(change->reload, change->next->name, &err);
	free_change(change);
}

static void look_at_change(struct change *change)
{
	if (change->next && change->next->parked && !change->closed) {
		drop_parked(change);
		return;
	}
	if (change->synced && !change->closed && bind_index_all_filed(change->next))
		close_old(change);
	if (change->closed && (!change->old || script_is_drained(change->old)))
		swap(change);
}

static void look_at_changes(struct reload *reload)
{
	LIST_EACH (&reload->changes, node)
		look_at_change(LIST_ENTRY(node, struct change, node));
}

static void look_at_endings(struct reload *reload)
{
	LIST_EACH (&reload->endings, node) {
		struct ending *ending = LIST_ENTRY(node, struct ending, node);
		if (script_is_idle(ending->script))
			free_ending(ending);
	}
}

/* New code that waits for its caches holds nobody up: it may wait for long. */
static bool may_begin(const struct reload *reload)
{
	LIST_EACH (&reload->changes, node)
		if (LIST_ENTRY(node, struct change, node)->closed)
			return false;
	return host_is_ready(reload->host) && !list_is_empty(&reload->asks);
}

static void on_look(void *data)
{
	struct reload *reload = data;
	if (reload->stopped)
		return;
	look_at_changes(reload);
	look_at_endings(reload);
	if (reload->running && list_is_empty(&reload->changes)) {
		reload->running = false;
		finish_asks(reload);
	}
	if (may_begin(reload))
		begin(reload);
}

void reload_settled(struct reload *reload)
{
	if (reload->running || !list_is_empty(&reload->endings) || !list_is_empty(&reload->asks))
		loop_post(reload->loop, &reload->look);
}

/* Code that was corrected need not wait until the mistake is given up. */
static void give_way(struct reload *reload)
{
	LIST_EACH (&reload->changes, node) {
		struct change *change = LIST_ENTRY(node, struct change, node);
		if (change->closed || !files_have_changed(&change->next->files))
			continue;
		log_info(LOG_FIELDS({"script", change->next->name}),
			 "its files have changed again: the reload that waits for its caches gives way");
		if (!reload->outcome.failed++)
			err_set(&reload->outcome.err, "", "%s: newer code came before its caches had synced",
				change->next->name);
		free_change(change);
	}
}

void reload_start(struct reload *reload, bool forced, host_reload_fn on_done, void *data)
{
	struct ask *ask = alloc_object(&ask_type, sizeof(*ask));
	ask->on_done = on_done;
	ask->data = data;
	ask->forced = forced;
	list_add_tail(&reload->asks, &ask->node);
	give_way(reload);
	if (!host_is_ready(reload->host))
		log_info(NULL, "the reload waits until the caches have synced");
	reload_settled(reload);
}

/* --- making, ending --- */

struct reload *reload_new(struct host *host)
{
	struct reload *reload = alloc_object(&reload_type, sizeof(*reload));
	struct list *lists[] = {&reload->asks, &reload->served, &reload->changes, &reload->endings};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		list_init(lists[i]);
	reload->host = host;
	reload->loop = host_loop(host);
	loop_job_init(&reload->look, on_look, reload);
	metric_define(host_metrics(host), table, FAMILIES, reload->families);
	return reload;
}

static int load_first(void *data, const char *name, const char *path, const char *folder, struct err *err)
{
	struct reload *reload = data;
	if (script_at(reload, path))
		return 0;
	struct script *script = script_new(reload->host, name, path, folder, NULL, err);
	if (!script)
		return -1;
	list_add_tail(host_scripts(reload->host), &script->node);
	return 0;
}

int reload_add_path(struct reload *reload, const char *path, struct err *err)
{
	reload->paths = alloc_resize(reload->paths, (reload->path_count + 1) * sizeof(*reload->paths));
	reload->paths[reload->path_count++] = alloc_string(path);
	return load_find(path, load_first, reload, err);
}

void reload_stop(struct reload *reload)
{
	reload->stopped = true;
	while (!list_is_empty(&reload->changes))
		free_change(LIST_ENTRY(reload->changes.next, struct change, node));
	list_move(&reload->served, &reload->asks);
	if (!list_is_empty(&reload->served))
		err_set(&reload->outcome.err, "", "the program is stopping");
	finish_asks(reload);
}

void reload_each_old(struct reload *reload, void (*fn)(struct script *script))
{
	LIST_EACH (&reload->endings, node)
		fn(LIST_ENTRY(node, struct ending, node)->script);
}

struct reconciler *reload_find_old(const struct reload *reload, const char *name)
{
	struct reconciler *found = NULL;
	LIST_EACH (&reload->endings, node) {
		struct reconciler *one = reconciler_find_in(LIST_ENTRY(node, struct ending, node)->script, name);
		found = one ? one : found;
	}
	return found;
}

struct reconciler *reload_find_next(const struct reload *reload, const char *name)
{
	struct reconciler *found = NULL;
	LIST_EACH (&reload->changes, node) {
		const struct script *next = LIST_ENTRY(node, struct change, node)->next;
		if (!found && next)
			found = reconciler_find_in(next, name);
	}
	return found;
}

bool reload_is_idle(const struct reload *reload)
{
	LIST_EACH (&reload->endings, node)
		if (!script_is_idle(LIST_ENTRY(node, struct ending, node)->script))
			return false;
	return true;
}

void reload_free(struct reload *reload)
{
	loop_job_cancel(&reload->look);
	list_move(&reload->served, &reload->asks);
	for (struct list *node; (node = list_pop(&reload->served));)
		alloc_object_free(&ask_type, LIST_ENTRY(node, struct ask, node));
	while (!list_is_empty(&reload->changes))
		free_change(LIST_ENTRY(reload->changes.next, struct change, node));
	while (!list_is_empty(&reload->endings))
		free_ending(LIST_ENTRY(reload->endings.next, struct ending, node));
	for (size_t i = 0; i < reload->path_count; i++)
		alloc_free(reload->paths[i]);
	alloc_free(reload->paths);
	alloc_object_free(&reload_type, reload);
}
