/* options: the flags and operands of one command line, read by one table. */
#ifndef PERILUNE_CLI_OPTIONS_H
#define PERILUNE_CLI_OPTIONS_H

#include <stdio.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/value.h"

/* Strings are argv's own. */
struct options {
	const struct verb *verb; /* NULL where the line names none */
	bool help;               /* -h, --help */
	bool version;            /* --version in place of a verb */
	struct value_texts operands;
	struct value_texts handed_on; /* the operands and the flags that are not ours, in order */

	const char *kubeconfig, *context, *namespace; /* NULL where not given */
	struct value_texts settings;
	const char *listen; /* NULL: the default; "off" */
	const char *socket; /* NULL: the default */
	enum log_format log_format;
	enum log_level log_level;
	double sync_timeout, grace_period, time_limit;
	bool leader_elect;
	struct value_lease lease, account;
	double lease_duration, renew_deadline, retry_period;
	size_t memory_limit;
	bool jit, unsafe_libs, dry_run, sandbox;
	enum value_choice watch;
	struct value_texts manifests;
	const char *tls_cert, *tls_key, *tls_ca; /* NULL where not given */
	const char *rbac;                        /* NULL where not given */
	const char *output;                      /* NULL, "json" or "text" */
};

/* 0, or EXIT_USAGE after a line on stderr. options_fini in either case. */
int options_parse(struct options *options, int argc, char **argv);
void options_fini(struct options *options);

/* The help lines of the flags in these groups. */
void options_print(FILE *out, unsigned groups);

#endif
