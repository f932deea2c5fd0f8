/* testing: the cluster of one spec: a sandbox, the programs that run against it, and a time that stands still.
 *
 * While one is open the clock of the process is stopped, and only testing_move moves it. A program is what `perilune
 * run` would be: scripts loaded at one path, with a host, a barrier and caches of their own. Neither knows that it is
 * under test: requests go over the loopback, so what is under way there is asked for on both ends.
 *
 * One struct testing serves all the clusters of a process, one after another. */
#ifndef PERILUNE_SCRIPT_TESTING_H
#define PERILUNE_SCRIPT_TESTING_H

#include "script/host.h"
#include "json/scan.h"

struct testing;
struct testing_program;

struct testing *testing_new(struct host *host); /* that of the specs; its limits are the programs' too */
void testing_free(struct testing *testing);     /* closes it first */

/* Begins a cluster; manifests: as sandbox_options has them. What is logged from then on is in testing_logs, and errors
 * are on stderr too, unless it is quiet. -1 with err. */
int testing_open(struct testing *testing, const char *const *manifests, bool quiet, struct err *err);
/* Ends all programs at once, as if they were killed, and lets time go on. Whoever waits in testing_move is told
 * later, from the loop. Harmless when it is closed. */
void testing_close(struct testing *testing);
unsigned testing_generation(const struct testing *testing); /* of the open cluster; 0: none is open */

/* Borrowed for the call. NULL in namespace and settings: as the specs' host has them. */
struct testing_load {
	const char *path, *namespace;
	const char *const *settings;
};
/* Loads and starts; NULL with err. The program lives until testing_kill or testing_close. */
struct testing_program *testing_load(struct testing *testing, const struct testing_load *load, struct err *err);
void testing_kill(struct testing_program *program);
void testing_reload(struct testing_program *program); /* as host_reload, forced */

/* Moves the time on by so many seconds, in steps: at each, nothing is under way any more before the next timer comes.
 * 0: waits until nothing is under way. on_done is called once from the loop, with err when a step took longer than
 * patience (real seconds) or the cluster was closed. One at a time. */
void testing_move(struct testing *testing, double seconds, double patience,
		  void (*on_done)(void *data, const struct err *err), void *data);
void testing_forget_move(struct testing *testing); /* on_done is not called */
bool testing_is_moving(const struct testing *testing);

/* A JSON array of what was logged since it was opened, as `--log-format json` writes it; the first megabytes where it
 * is much. Borrowed until the next line is logged. */
struct json_slice testing_logs(struct testing *testing);

/* As sandbox_ask. The answer is borrowed until the next one; .data NULL where there is none. */
int testing_ask(struct testing *testing, const char *name, struct json_slice text, struct json_slice *answer,
		struct err *err);

#endif
