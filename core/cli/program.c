#include "cli/program.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/signals.h"

#define LEAST_DESCRIPTORS 64 /* a few for the program itself, and then some connections */

/* Watches, handlers' requests and page readers each take a descriptor; the usual soft limit is 1024. */
static int raise_descriptor_limit(struct err *err)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= LEAST_DESCRIPTORS)
		return 0;
	return err_set(err, "", "only %llu files may be open at once, and at least %d are needed; raise ulimit -n",
		       (unsigned long long)limit.rlim_max, LEAST_DESCRIPTORS);
}

int program_fail(const struct program *program, const struct err *err)
{
	bool usage = !strcmp(err->reason, "Usage");
	if (usage)
		return cli_usage(program->options->verb, "%s", err->message);
	if (program->plain)
		fprintf(stderr, "%s\n", err->message);
	else
		log_error(NULL, "%s", err->message);
	return EXIT_FAILED;
}

/* *config stays NULL where there is none and none is needed; why says what an API call is told then. */
static int load_config(struct program *program, enum program_cluster cluster, struct config **config, struct err *why)
{
	const struct options *options = program->options;
	const char *kubeconfig = program->sandbox ? sandbox_kubeconfig(program->sandbox) : options->kubeconfig;
	bool asked_for = kubeconfig || options->context;
	*config = NULL;
	if (cluster != PROGRAM_READS_CLUSTER || asked_for)
		*config = config_load(&(struct config_options){kubeconfig, options->context, options->namespace}, why);
	if (!*config && (cluster == PROGRAM_NEEDS_CLUSTER || asked_for))
		return program_fail(program, why);
	if (cluster == PROGRAM_READS_CLUSTER)
		err_set(why, "", "there is no cluster in `perilune %s`", options->verb->name);
	return 0;
}

#define JITTER 1.2 /* of a retry: client-go's rule is that one fits into the deadline */

static int check_election(const struct options *options)
{
	double duration = options->lease_duration;
	if (!options->leader_elect)
		return *options->lease.name ? cli_usage(options->verb, "--lease needs --leader-elect") : 0;
	if (!(duration >= 1 && duration <= INT32_MAX && duration == floor(duration)))
		return cli_usage(options->verb, "--lease-duration must be whole seconds, 1s at least");
	if (!(duration > options->renew_deadline))
		return cli_usage(options->verb, "--lease-duration must be longer than --renew-deadline");
	if (!(options->renew_deadline > JITTER * options->retry_period && options->retry_period > 0))
		return cli_usage(options->verb, "--renew-deadline must be longer than %g times --retry-period", JITTER);
	return 0;
}

/* The name does not depend on the scripts: then two releases of one deployment, while the new one takes over, never
 * lead side by side. */
static const struct elector_options *fill_election(struct program *program, const struct config *config)
{
	const struct options *options = program->options;
	bool named = *options->lease.name;
	if (!options->leader_elect || !config)
		return NULL;
	program->election =
	    (struct elector_options){.namespace = named ? options->lease.namespace : config->own_namespace,
				     .name = named ? options->lease.name : "perilune",
				     .lease_duration = options->lease_duration,
				     .renew_deadline = options->renew_deadline,
				     .retry_period = options->retry_period};
	return &program->election;
}

static int make_host(struct program *program, struct config *config, const struct err *no_config)
{
	const struct options *options = program->options;
	struct host_options host = {.config = config,
				    .no_config = *no_config,
				    .namespace = options->namespace,
				    .settings = options->settings.items,
				    .sync_timeout = options->sync_timeout,
				    .grace_period = options->grace_period,
				    .time_limit = options->time_limit,
				    .memory_limit = options->memory_limit,
				    .jit = options->jit,
				    .unsafe_libs = options->unsafe_libs,
				    .dry_run = options->dry_run,
				    .rights_file = options->rbac,
				    .election = fill_election(program, config)};
	struct err err;
	program->host = host_new(program->loop, &host, &err);
	return program->host ? 0 : program_fail(program, &err);
}

int program_open_sandbox(struct program *program, const char *address)
{
	const struct options *from = program->options;
	struct sandbox_options options = {.address = address,
					  .cert_file = from->tls_cert,
					  .key_file = from->tls_key,
					  .ca_file = from->tls_ca,
					  .manifests = from->manifests.items};
	struct err err;
	program->sandbox = sandbox_new(program->loop, &options, &err);
	return program->sandbox ? 0 : program_fail(program, &err);
}

static int check_sandbox(const struct options *options)
{
	if (options->sandbox && (options->kubeconfig || options->context))
		return cli_usage(options->verb, "--sandbox is a cluster of its own: it takes no --%s",
				 options->kubeconfig ? "kubeconfig" : "context");
	if (!options->sandbox && options->manifests.count)
		return cli_usage(options->verb, "--manifests needs --sandbox");
	return 0;
}

int program_check_paths(const struct options *options)
{
	for (size_t i = 0; i < options->operands.count; i++)
		if (access(options->operands.items[i], F_OK))
			return cli_usage(options->verb, "%s: %s", options->operands.items[i], strerror(errno));
	return 0;
}

int program_open(struct program *program, const struct options *options, enum program_cluster cluster)
{
	bool for_people = cluster != PROGRAM_NEEDS_CLUSTER && options->log_format == LOG_TEXT;
	*program = (struct program){.options = options, .plain = for_people};
	struct config *config;
	struct err err;
	if (!raise_descriptor_limit(&err))
		program->loop = loop_new(&err);
	if (!program->loop)
		return program_fail(program, &err);
	int code = check_sandbox(options);
	if (!code)
		code = check_election(options);
	if (!code && options->sandbox)
		code = program_open_sandbox(program, "127.0.0.1:0");
	err_clear(&err);
	if (!code)
		code = load_config(program, cluster, &config, &err);
	if (code)
		return code;
	program->config = config;
	return make_host(program, config, &err);
}

void program_close(struct program *program)
{
	if (program->host)
		host_free(program->host);
	sandbox_free(program->sandbox);
	if (program->loop)
		loop_free(program->loop);
}

int program_load(struct program *program)
{
	const struct value_texts *paths = &program->options->operands;
	int code = 0;
	for (size_t i = 0; i < paths->count; i++) {
		struct err err;
		if (!host_load(program->host, paths->items[i], &err))
			continue;
		int failed = program_fail(program, &err);
		code = code ? code : failed;
	}
	return code;
}

int program_run(struct program *program)
{
	host_start(program->host);
	loop_run(program->loop);
	return host_exit_code(program->host);
}
