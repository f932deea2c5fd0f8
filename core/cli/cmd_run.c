#include <string.h>

#include "cli/program.h"
#include "cli/progress.h"
#include "cli/refresh.h"
#include "cli/signals.h"
#include "ops/control.h"
#include "ops/pages.h"

/* The default address may be taken by another host on the same machine; that one's user asked for no pages, so it is no
 * failure. Whoever names an address relies on it. */
static int listen_at(const struct program *program, struct pages **pages)
{
	const struct options *options = program->options;
	const char *address = options->listen               ? options->listen
			      : program->config->in_cluster ? ":8080"
							    : "127.0.0.1:8080";
	struct err err;
	*pages = NULL;
	if (!strcmp(address, "off"))
		return 0;
	*pages = pages_new(program->loop, program->host, address, options->time_limit, &err);
	if (*pages || options->listen)
		return *pages ? 0 : program_fail(program, &err);
	log_warn(NULL, "%s; going on without pages", err.message);
	return 0;
}

/* As with the pages: without a path nobody relies on it. A container's file system is often read-only. */
static int open_control(const struct program *program, struct control **control)
{
	const char *path = program->options->socket;
	struct err err;
	*control = control_new(program->loop, program->host, path, &err);
	if (*control)
		return 0;
	if (path) {
		err_prefix(&err, "--socket");
		return program_fail(program, &err);
	}
	log_info(NULL, "no control socket, so no `perilune status` and `reload`: %s", err.message);
	return 0;
}

/* The rows of /readyz?verbose: a table for people; as JSON a log line for each late cache, so that stderr stays what
 * its readers expect. */
static void tell_late(struct program *program)
{
	bool text = program->options->log_format == LOG_TEXT;
	struct buf table;
	buf_init(&table, 0);
	host_readiness(program->host, &table);
	log_error(NULL, "caches did not sync: no progress for %g s (--sync-timeout)", program->options->sync_timeout);
	for (char *rest = table.data, *line; (line = strsep(&rest, "\n"));) {
		if (text && line[0] == '[')
			fprintf(stderr, "%s\n", line);
		else if (!strncmp(line, "[-]", 3))
			log_error(NULL, "%s", line + 3);
	}
	buf_fini(&table);
}

static int run_host(struct program *program)
{
	struct progress *progress = progress_new(program->loop, program->host, program->options->log_format);
	int code = program_run(program);
	progress_free(progress);
	if (code == EXIT_NOT_SYNCED)
		tell_late(program);
	return code;
}

static void announce(const struct config *config, const struct options *options)
{
	log_info(LOG_FIELDS({"server", config->server}, {"config", config->source}, {"context", config->context},
			    {"dry_run", options->dry_run ? "true" : NULL}),
		 "perilune " PERILUNE_VERSION);
}

static int watch_files(const struct program *program, struct refresh **refresh)
{
	struct err err;
	if (!refresh_new(program->loop, program->host, program->options, refresh, &err))
		return 0;
	err_prefix(&err, "--watch");
	return program_fail(program, &err);
}

static int load_and_run(struct program *program)
{
	struct pages *pages = NULL;
	struct control *control = NULL;
	struct refresh *refresh;
	signals_end(program->loop, program->host);
	signals_reload(program->loop, program->host);
	announce(program->config, program->options);
	int code = watch_files(program, &refresh);
	if (!code)
		code = program_load(program);
	if (!code)
		code = listen_at(program, &pages);
	if (!code)
		code = open_control(program, &control);
	if (!code)
		code = run_host(program);
	refresh_free(refresh);
	control_free(control);
	pages_free(pages);
	return code;
}

int cmd_run(const struct options *options)
{
	struct program program;
	int code = program_check_paths(options);
	if (code)
		return code;
	code = program_open(&program, options, PROGRAM_NEEDS_CLUSTER);
	if (!code)
		code = load_and_run(&program);
	program_close(&program);
	return code;
}
