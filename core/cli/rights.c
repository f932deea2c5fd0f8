#include "cli/rights.h"

#include "net/loop.h"

struct rbac *rights_new(struct program *program, struct audit *audit)
{
	const struct options *options = program->options;
	const struct value_lease *asked = &options->lease;
	const char *namespace = *options->account.name ? options->account.namespace : "default";
	if (program->config)
	namespace = program->config->own_namespace;
	const struct rbac_lease lease = {.namespace = *asked->name ? asked->namespace : namespace,
					 .name = *asked->name ? asked->name : "perilune",
					 .wanted = options->leader_elect};
	return rbac_new(program->host, audit, &lease);
}

static void on_done(void *data)
{
	loop_stop(data);
}

static int tell(const struct buf *lines)
{
	fputs(buf_text(lines), stderr);
	return lines->length ? EXIT_FAILED : 0;
}

int rights_look_up(struct program *program, struct rbac *rbac)
{
	struct buf lines;
	rbac_look_up(rbac, on_done, program->loop);
	loop_run(program->loop);
	buf_init(&lines, 0);
	rbac_tell_kinds(rbac, &lines);
	int code = tell(&lines);
	buf_fini(&lines);
	return code;
}

int rights_review(struct program *program, struct rbac *rbac)
{
	struct buf lines;
	struct err err;
	if (rbac_review(rbac, on_done, program->loop, &err))
		return program_fail(program, &err);
	loop_run(program->loop);
	buf_init(&lines, 0);
	int code = rbac_tell_missing(rbac, &lines, &err) ? program_fail(program, &err) : tell(&lines);
	buf_fini(&lines);
	return code;
}
