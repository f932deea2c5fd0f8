#include <string.h>

#include "cli/program.h"
#include "cli/signals.h"

/* busted's flags: those with a value, and switches, which also come as --no-NAME. */
static const char *const with_value[] = {
    "pattern",    "exclude-pattern", "output", "config-file", "tags",   "exclude-tags", "filter",
    "filter-out", "lpath",           "cpath",  "run",         "repeat", "seed",         "lang",
    "loaders",    "helper",          NULL};
static const char *const switches[] = {
    "verbose",          "list",          "keep-going",    "recursive", "lazy",       "auto-insulate",
    "shuffle",          "shuffle-files", "shuffle-tests", "sort",      "sort-files", "sort-tests",
    "suppress-pending", "defer-print",   "enable-sound",  NULL};
static const char letters_with_value[] = "poftmreX"; /* X: "-Xoutput OPTION", "-Xhelper OPTION" */
static const char letter_switches[] = "vlkRs";

static bool is_among(const char *const *names, const char *name, size_t length)
{
	for (; *names; names++)
		if (strlen(*names) == length && !memcmp(*names, name, length))
			return true;
	return false;
}

static int foreign_letter(const char *argument)
{
	char letter = argument[1];
	if (strchr(letters_with_value, letter))
		return letter != 'X' && argument[2] ? 1 : 2;
	return strchr(letter_switches, letter) ? 1 : 0;
}

int cmd_test_foreign(const char *argument)
{
	if (strncmp(argument, "--", 2) != 0)
		return foreign_letter(argument);
	const char *name = argument + 2;
	size_t length = strcspn(name, "=");
	if (is_among(with_value, name, length))
		return name[length] ? 1 : 2;
	if (!strncmp(name, "no-", 3))
		name += 3;
	return is_among(switches, name, strlen(name)) ? 1 : 0;
}

static int run_specs(struct program *program)
{
	const struct value_texts *arguments = &program->options->handed_on;
	struct err err;
	signals_end(program->loop, program->host);
	if (host_load_specs(program->host, arguments->items, arguments->count, &err))
		return program_fail(program, &err);
	return program_run(program);
}

int cmd_test(const struct options *options)
{
	struct program program;
	int code = program_check_paths(options);
	if (code)
		return code;
	code = program_open(&program, options, PROGRAM_MAY_HAVE_CLUSTER);
	if (!code)
		code = run_specs(&program);
	program_close(&program);
	return code;
}
