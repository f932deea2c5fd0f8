#include <string.h>

#include "base/buf.h"
#include "cli/rights.h"
#include "script/load.h"

/* One run of check. */
struct check {
	struct program program;
	struct audit *audit;
	const char *operand; /* the PATH that is looked at */
	struct buf faults;   /* of one script, a line each */
	int code;
};

static void describe(const struct program *program)
{
	struct buf text;
	buf_init(&text, 0);
	host_describe(program->host, &text);
	fwrite(buf_text(&text), 1, text.length, stdout);
	buf_fini(&text);
}

static void fail(struct check *check, const struct err *err)
{
	int code = program_fail(&check->program, err);
	check->code = check->code ? check->code : code;
}

/* Whether the audit has said of that line what the script fails with: it names the near names too. */
static bool is_told(const struct check *check, const struct err *err)
{
	const char *told = buf_text(&check->faults);
	for (const char *end; (end = strchr(told, '\n')); told = end + 1) {
		size_t length = strcspn(told, "\n");
		const char *hint = strstr(told, ", did you mean");
		if (hint && hint < end)
			length = (size_t)(hint - told);
		if (!strncmp(told, err->message, length))
			return true;
	}
	return false;
}

static int audit_script(struct check *check, const char *path, const char *folder, struct err *err)
{
	const char *const texts[] = {path, folder};
	buf_reset(&check->faults);
	if (audit_ask(check->audit, "faults", texts, 2, &check->faults, err))
		return -1;
	fputs(buf_text(&check->faults), stderr);
	if (check->faults.length)
		check->code = check->code ? check->code : EXIT_FAILED;
	return 0;
}

/* A failure ends neither the other scripts' loading nor what is said of them. */
static int check_script(void *data, const char *name, const char *path, const char *folder, struct err *err)
{
	struct check *check = data;
	const char *file = strrchr(path, '/');
	struct err why;
	(void)name;
	if (audit_script(check, path, folder, err))
		return -1;
	/* a folder is loaded as such, as the script has its name */
	const char *whole = file && !strcmp(file, "/init.lua") ? check->operand : path;
	if (host_load(check->program.host, whole, &why) && !is_told(check, &why))
		fail(check, &why);
	return 0;
}

static void check_paths(struct check *check)
{
	const struct value_texts *paths = &check->program.options->operands;
	for (size_t i = 0; i < paths->count; i++) {
		struct err err;
		check->operand = paths->items[i];
		if (load_find(check->operand, check_script, check, &err))
			fail(check, &err);
	}
}

/* Only of what can be loaded: else its kinds and rights are not all known. */
static void ask_cluster(struct check *check)
{
	struct rbac *rbac = rights_new(&check->program, check->audit);
	check->code = rights_look_up(&check->program, rbac);
	int code = rbac_is_answered(rbac) ? rights_review(&check->program, rbac) : 0;
	check->code = check->code ? check->code : code;
	rbac_free(rbac);
}

static void run(struct check *check)
{
	struct err err;
	check->audit = audit_new(check->program.host, &err);
	if (!check->audit) {
		fail(check, &err);
		return;
	}
	check_paths(check);
	if (!check->code && check->program.config)
		ask_cluster(check);
	if (!check->code)
		describe(&check->program);
	audit_free(check->audit);
}

int cmd_check(const struct options *options)
{
	struct check check = {0};
	check.code = program_open(&check.program, options, PROGRAM_READS_CLUSTER);
	buf_init(&check.faults, 0);
	if (!check.code)
		run(&check);
	buf_fini(&check.faults);
	program_close(&check.program);
	return check.code;
}
