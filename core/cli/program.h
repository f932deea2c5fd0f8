/* program: what run, check and test share: the loop, the cluster's configuration and the host of one command line. */
#ifndef PERILUNE_CLI_PROGRAM_H
#define PERILUNE_CLI_PROGRAM_H

#include "cli/options.h"
#include "script/host.h"
#include "script/sandbox.h"

struct program {
	const struct options *options;
	struct loop *loop;
	struct sandbox *sandbox; /* with --sandbox */
	struct host *host;
	struct elector_options election; /* the host's, with --leader-elect */
	const struct config *config;     /* the host's; NULL without a cluster */
	bool plain; /* failures are lines for people and editors ("file:line: what"), not log lines */
};

enum program_cluster {
	PROGRAM_NEEDS_CLUSTER,
	PROGRAM_MAY_HAVE_CLUSTER, /* one that was asked for by a flag must be there all the same */
	PROGRAM_READS_CLUSTER     /* that one alone; scripts are loaded and don't run */
};

/* Whether all operands are there, so that a misspelt one is told before what the cluster lacks. 0, or EXIT_USAGE after
 * the first that is not was told. */
int program_check_paths(const struct options *options);

/* 0, or an exit code after the reason was told. program_close in either case. program_open_sandbox needs the loop
 * alone, and is part of program_open. */
int program_open(struct program *program, const struct options *options, enum program_cluster cluster);
int program_open_sandbox(struct program *program, const char *address);
void program_close(struct program *program);

int program_load(struct program *program); /* every path, each failure told; 0 or the first failure's exit code */
int program_run(struct program *program);  /* from host_start to the loop's end; the host's exit code */
int program_fail(const struct program *program, const struct err *err); /* tells it; returns its exit code */

#endif
