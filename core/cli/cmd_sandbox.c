#include <signal.h>
#include <stdio.h>

#include "cli/program.h"
#include "script/sandbox.h"

static void stop(void *data)
{
	loop_stop(data);
}

static void serve(struct loop *loop, const struct sandbox *sandbox)
{
	loop_on_signal(loop, SIGTERM, stop, loop);
	loop_on_signal(loop, SIGINT, stop, loop);
	log_info(LOG_FIELDS({"server", sandbox_url(sandbox)}), "perilune " PERILUNE_VERSION " sandbox");
	puts(sandbox_kubeconfig(sandbox));
	fflush(stdout);
	loop_run(loop);
}

int cmd_sandbox(const struct options *options)
{
	struct program program = {.options = options};
	struct err err;
	if (!options->tls_cert != !options->tls_key || (options->tls_ca && !options->tls_cert))
		return cli_usage(options->verb, "HTTPS takes both --tls-cert and --tls-key");
	program.loop = loop_new(&err);
	int code = program.loop ? program_open_sandbox(&program, options->listen ? options->listen : "127.0.0.1:0")
				: program_fail(&program, &err);
	if (!code)
		serve(program.loop, program.sandbox);
	program_close(&program);
	return code;
}
