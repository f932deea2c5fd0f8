#include "base/buf.h"
#include "cli/program.h"

static void describe(const struct program *program)
{
	struct buf text;
	buf_init(&text, 0);
	host_describe(program->host, &text);
	fwrite(buf_text(&text), 1, text.length, stdout);
	buf_fini(&text);
}

int cmd_check(const struct options *options)
{
	struct program program;
	int code = program_open(&program, options, PROGRAM_HAS_NO_CLUSTER);
	if (!code)
		code = program_load(&program);
	if (!code)
		describe(&program);
	program_close(&program);
	return code;
}
