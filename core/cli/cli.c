#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "cli/options.h"
#include "script/host.h"

#define FLAGS_RUN                                                                                                      \
	(FLAGS_CLUSTER | FLAGS_SCRIPT | FLAGS_HOST | FLAGS_ELECTION | FLAGS_LISTEN | FLAGS_LOG | FLAGS_SANDBOX |       \
	 FLAGS_MANIFESTS | FLAGS_SOCKET | FLAGS_WATCH)

static const struct verb verbs[] = {
    {"run", "PATH...", "run the scripts until SIGTERM or SIGINT",
     "A PATH is a .lua file, a folder with init.lua (one script), or a folder of .lua files (each a script;\n"
     "*_spec.lua and _*.lua are none).\n\n"
     "The first SIGTERM or SIGINT ends it gracefully within --grace-period, exit code 0. A second one ends it at\n"
     "once, exit code 1, since what was running was cut off.\n",
     FLAGS_RUN, 1, UINT_MAX, cmd_run, NULL},
    {"check", "PATH...", "load the scripts, print what they register, and tell of all that is wrong",
     "Takes the flags of `perilune run`, so that its whole command line can be checked. Nothing of the scripts runs "
     "but\n"
     "their top level; names that are not there are found in all of their functions.\n\n"
     "With --kubeconfig, --context or --sandbox it also asks that cluster whether it has their kinds, and whether "
     "they\n"
     "may do there what `perilune rbac` would allow; else nothing connects.\n",
     FLAGS_RUN, 1, UINT_MAX, cmd_check, NULL},
    {"rbac", "PATH...", "print a service account and roles with the rights that the scripts need",
     "For `kubectl apply -f -`. Rights come from what the scripts register (informers, finalizers, what is the "
     "leader's\n"
     "alone), from calls of k8s.event, and from what they declare with k8s.needs.\n\n"
     "Where all informers of a script name namespaces (-n does that too), its rights are in those; else in all. Kinds\n"
     "are looked up with --kubeconfig or --context, or with --sandbox and --manifests; else custom ones have a plural\n"
     "that is guessed, which a comment says.\n",
     FLAGS_RUN | FLAGS_ACCOUNT, 1, UINT_MAX, cmd_rbac, NULL},
    {"test", "PATH...", "run specs with busted inside the host",
     "A PATH is a spec file or a folder of *_spec.lua. busted's own flags are handed to it, among them:\n"
     "  --filter PATTERN, --filter-out PATTERN, -t/--tags TAGS, --exclude-tags TAGS, -o/--output HANDLER, -v, -l\n",
     FLAGS_CLUSTER | FLAGS_SCRIPT | FLAGS_HOST | FLAGS_LOG | FLAGS_SANDBOX | FLAGS_MANIFESTS | FLAGS_SPECS, 1, UINT_MAX,
     cmd_test, cmd_test_foreign},
    {"sandbox", "", "serve an in-memory Kubernetes API until SIGTERM or SIGINT",
     "Prints the path of a kubeconfig for it, which is removed at the end. Nothing is kept, and everybody may do\n"
     "everything: for trying scripts out, and for tests. --listen is 127.0.0.1 and a free port unless given.\n",
     FLAGS_LISTEN | FLAGS_LOG | FLAGS_MANIFESTS | FLAGS_TLS, 0, 0, cmd_sandbox, NULL},
    {"status", "", "show what a running host does",
     "Asks a host of this user on this machine: the only one, or that of --socket. Shows its informers, its scripts "
     "and\n"
     "the queues of their handlers and controllers; -o json gives all that there is.\n",
     FLAGS_SOCKET | FLAGS_OUTPUT, 0, 0, cmd_status, NULL},
    {"reload", "", "have a running host load its scripts anew",
     "Asks a host of this user on this machine, the only one or that of --socket, and waits for the outcome, as long "
     "as\n"
     "it takes: until the new code's caches have filled, and the old code's events are told. What does not load "
     "changes\n"
     "nothing; then the exit code is 1.\n",
     FLAGS_SOCKET | FLAGS_OUTPUT, 0, 0, cmd_reload, NULL},
    {"version", "", "print the version", "", FLAGS_OUTPUT, 0, 0, cmd_version, NULL},
    {"help", "[VERB]", "explain the program, or one verb", "", 0, 0, 1, cmd_help, NULL},
    {NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL},
};

const struct verb *cli_verbs(void)
{
	return verbs;
}

const struct verb *cli_verb(const char *name)
{
	for (const struct verb *verb = verbs; verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	return NULL;
}

int cli_usage(const struct verb *verb, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("perilune: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, "; see `perilune help%s%s`\n", verb ? " " : "", verb ? verb->name : "");
	va_end(args);
	return EXIT_USAGE;
}

static bool is_lua_file(const char *word)
{
	size_t length = strlen(word);
	return length > 4 && !strcmp(word + length - 4, ".lua");
}

int cli_unknown_verb(const char *word)
{
	struct suggest suggest;
	suggest_init(&suggest, word);
	for (const struct verb *verb = verbs; verb->name; verb++)
		suggest_offer(&suggest, verb->name);
	if (is_lua_file(word) || (!suggest.best && !access(word, F_OK)))
		return cli_usage(NULL, "unknown verb \"%s\": did you mean `perilune run %s`?", word, word);
	if (suggest.best)
		return cli_usage(NULL, "unknown verb \"%s\": did you mean %s?", word, suggest.best);
	return cli_usage(NULL, "unknown verb \"%s\"", word);
}

/* A closed stdin, stdout or stderr would be given to the first file or socket, and a log line written into that. */
static void open_standard_files(void)
{
	int file;
	do
		file = open("/dev/null", O_RDWR);
	while (file >= 0 && file <= STDERR_FILENO);
	if (file >= 0)
		close(file);
}

/* A full disk or a reader that has gone must not look like success. */
static int flush_output(int code)
{
	bool failed = fflush(stdout) != 0;
	int why = errno;
	if (!failed &&
	    !ferror(stdout)) /* ferror: a line that was lost while it ran, for a reason that is gone by now */
		return code;
	fprintf(stderr, "perilune: stdout: %s\n", failed ? strerror(why) : "not all that was printed could be written");
	return code ? code : EXIT_FAILED;
}

static int check_memory(int code)
{
#ifdef PERILUNE_DEBUG
	if (alloc_live(stderr) && !code)
		return EXIT_FAILED;
#endif
	return code;
}

static int run_verb(const struct options *options)
{
	if (options->help)
		return cmd_help(options);
	if (options->version)
		return cmd_version(options);
	if (!options->verb)
		return cli_usage(NULL, "no verb given");
	log_set_format(options->log_format);
	log_set_level(options->log_level);
	return options->verb->run(options);
}

int cli_main(int argc, char **argv)
{
	open_standard_files();
	signal(SIGPIPE, SIG_IGN);
	struct options options;
	int code = options_parse(&options, argc, argv);
	if (!code)
		code = run_verb(&options);
	options_fini(&options);
	return check_memory(flush_output(code));
}
