/* host: scripts, their cluster and the barrier they share, from load to shutdown. What core/cli starts and core/ops
 * reads.
 *
 * Order: host_new, host_load, host_start, loop_run, host_free. Between host_start and the end everything happens in the
 * loop; host_stop asks for the graceful end. */
#ifndef PERILUNE_SCRIPT_HOST_H
#define PERILUNE_SCRIPT_HOST_H

#include "base/metric.h"
#include "cache/barrier.h"
#include "cache/factory.h"
#include "kube/config.h"
#include "kube/elector.h"

struct host;

/* Strings and arrays are borrowed for the host's life. */
struct host_options {
	struct config *config; /* taken; NULL: no cluster, so nothing can be started */
	struct err no_config;  /* why config is NULL: what an API call then says; message "" where none is wanted */
	const char *namespace; /* the default factory's; NULL: all */
	const char *const *settings; /* "key=value", read as k8s.config.key; ended by NULL, or NULL */
	double sync_timeout;         /* seconds without progress; 0: for ever */
	double grace_period;         /* seconds */
	double time_limit;           /* seconds between yields; 0: none */
	size_t memory_limit;         /* bytes a script; 0: none */
	bool jit, unsafe_libs, dry_run;
	const char *rights_file; /* of specs: where the roles go that scripts under test needed; NULL: nowhere */
	const struct elector_options *election; /* NULL: this host always leads */
};

/* The program's exit codes. */
enum { EXIT_STOPPED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_SYNCED = 3, EXIT_LOST_LEADERSHIP = 4 };

/* Takes options->config, also on failure. NULL with err. */
struct host *host_new(struct loop *loop, const struct host_options *options, struct err *err);
void host_free(struct host *host);

/* What a reload has come to. err: of the first script that failed, with the reason "" and no message when none did. */
struct host_reload {
	unsigned replaced, started, stopped, failed; /* scripts */
	struct err err;
};
typedef void (*host_reload_fn)(void *data, const struct host_reload *outcome);

/* Loads the scripts of one path: a .lua file, a folder with init.lua, or a folder of .lua files. 0, or -1 with err
 * (file:line: what); err->reason is "Usage" when the path is not there or holds no script. */
int host_load(struct host *host, const char *path, struct err *err);

/* Loads busted with these spec files and folders in place of scripts: it runs as a script's main with the full library
 * and without limits. Its exit code becomes the host's. */
int host_load_specs(struct host *host, const char *const *arguments, size_t count, struct err *err);

/* Connects, waits at the barrier, delivers. Returns at once; the loop stops when all has ended. */
void host_start(struct host *host);
/* Graceful: on_shutdown runs, and calls under way get the grace period; then the loop stops. */
void host_stop(struct host *host);
/* Loads the scripts at the paths anew, as reload.h says; forced: also those whose files are what they were. on_done is
 * called once, from the loop, unless the host is freed before; it may be NULL. */
void host_reload(struct host *host, bool forced, host_reload_fn on_done, void *data);
int host_exit_code(const struct host *host); /* after the loop has stopped */

const char *host_only_script(struct host *host); /* its name, borrowed; NULL where there are more, or none */
bool host_is_ready(const struct host *host);     /* the barrier has opened, and no shutdown has begun */
struct pool *host_pool(struct host *host);
struct metric_registry *host_metrics(struct host *host); /* of all that the host does; for the page, and to add to */

/* Appended to out. For check: what each script registers, a line each. */
void host_describe(struct host *host, struct buf *out);
/* For /readyz?verbose: "[+]v1/Pod synced, 12 objects" or "[-]v1/Secret forbidden: …" for each informer, then "readyz
 * check passed" or "failed". */
void host_readiness(struct host *host, struct buf *out);
void host_status_json(struct host *host, struct buf *out); /* for /status */

#endif
