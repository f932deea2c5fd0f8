#include "base/buf.h"
#include "cli/rights.h"

/* The script's name where there is one script, so that two programs of a cluster do not share their roles. */
static const char *account_name(const struct program *program)
{
	const struct value_lease *given = &program->options->account;
	const char *only = host_only_script(program->host);
	return *given->name ? given->name : only ? only : "perilune";
}

static const char *account_namespace(const struct program *program)
{
	const struct value_lease *given = &program->options->account;
	if (*given->name)
		return given->namespace;
	return program->config ? program->config->own_namespace : "default";
}

static int print(struct program *program, const struct rbac *rbac)
{
	struct buf text;
	struct err err;
	buf_init(&text, 0);
	int failed = rbac_yaml(rbac, account_namespace(program), account_name(program), &text, &err);
	if (!failed)
		fwrite(text.data, 1, text.length, stdout);
	buf_fini(&text);
	return failed ? program_fail(program, &err) : 0;
}

static int run(struct program *program)
{
	struct err err;
	int code = program_load(program);
	if (code)
		return code;
	struct audit *audit = audit_new(program->host, &err);
	if (!audit)
		return program_fail(program, &err);
	struct rbac *rbac = rights_new(program, audit);
	if (program->config)
		code = rights_look_up(program, rbac);
	if (!code)
		code = print(program, rbac);
	rbac_free(rbac);
	audit_free(audit);
	return code;
}

int cmd_rbac(const struct options *options)
{
	struct program program;
	int code = program_open(&program, options, PROGRAM_READS_CLUSTER);
	if (!code)
		code = run(&program);
	program_close(&program);
	return code;
}
