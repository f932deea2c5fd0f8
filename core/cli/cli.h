/* cli: the command line. Arguments in; one verb runs; its exit code out (script/host.h has them).
 *
 * A verb is a file cmd_VERB.c and a row of the table in cli.c. */
#ifndef PERILUNE_CLI_CLI_H
#define PERILUNE_CLI_CLI_H

#include <stdbool.h>

struct options;

enum {                    /* which flags a verb takes; each row of the flags in options.c belongs to one of these */
       FLAGS_CLUSTER = 1, /* which API server */
       FLAGS_SCRIPT = 2,  /* what scripts may do */
       FLAGS_HOST = 4,    /* how long the host waits */
       FLAGS_LISTEN = 8,
       FLAGS_LOG = 16,
       FLAGS_OUTPUT = 32,
       FLAGS_SANDBOX = 64,    /* whether there is one */
       FLAGS_MANIFESTS = 128, /* what is in it */
       FLAGS_TLS = 256,       /* how it is served */
       FLAGS_ELECTION = 512,  /* which of several hosts leads */
       FLAGS_SOCKET = 1024,   /* how a running host is found */
       FLAGS_WATCH = 2048,    /* whether files that change are loaded anew */
       FLAGS_ACCOUNT = 4096,  /* who gets rights */
       FLAGS_SPECS = 8192     /* what specs leave behind */
};

struct verb {
	const char *name;
	const char *arguments; /* as help shows them; "" when there are none */
	const char *summary;   /* one line of `perilune help` */
	const char *text;      /* the rest of `perilune help VERB` */
	unsigned flags;
	unsigned least, most; /* operands */
	int (*run)(const struct options *options);
	/* 0: no such flag; else how many arguments it takes, itself included, all handed on as they are. NULL: none
	 * are. */
	int (*foreign)(const char *argument);
};

int cli_main(int argc, char **argv);

const struct verb *cli_verb(const char *name); /* NULL when there is none */
const struct verb *cli_verbs(void);            /* the table; ends with a NULL name */
int cli_unknown_verb(const char *word);        /* as cli_usage, with the nearest verb, or `run` for a path */

/* "perilune: MESSAGE; see `perilune help VERB`" on stderr; verb may be NULL. Returns EXIT_USAGE. */
int cli_usage(const struct verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cmd_run(const struct options *options);
int cmd_check(const struct options *options);
int cmd_rbac(const struct options *options);
int cmd_test(const struct options *options);
int cmd_sandbox(const struct options *options);
int cmd_status(const struct options *options);
int cmd_reload(const struct options *options);
int cmd_version(const struct options *options);
int cmd_help(const struct options *options);
int cmd_test_foreign(const char *argument);

#endif
