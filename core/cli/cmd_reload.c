#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "script/host.h"
#include "json/scan.h"

static unsigned count_of(struct json_slice outcome, const char *key)
{
	int64_t count = 0;
	json_integer(json_get(outcome, key), &count);
	return (unsigned)count;
}

static void print_counts(struct json_slice outcome, const char *where)
{
	unsigned replaced = count_of(outcome, "replaced"), started = count_of(outcome, "started"),
		 stopped = count_of(outcome, "stopped");
	printf("%u script%s reloaded", replaced, replaced == 1 ? "" : "s");
	if (started)
		printf(", %u new", started);
	if (stopped)
		printf(", %u gone", stopped);
	printf(", by the host at %s\n", where);
}

/* The first failure's reason. A reload that was broken off has one too, and no failed script. */
static void print_failure(struct json_slice outcome, const char *where)
{
	char *why = json_string_copy(json_get(outcome, "error"));
	unsigned failed = count_of(outcome, "failed");
	fprintf(stderr, "perilune: %s: ", where);
	if (failed)
		fprintf(stderr, "%u script%s failed, the code before goes on: ", failed, failed == 1 ? "" : "s");
	fprintf(stderr, "%s\n", why ? why : "no outcome");
	alloc_free(why);
}

/* Caches may take minutes to fill, or wait for somebody to correct a kind's name. */
static void tell_slow(void)
{
	fprintf(stderr,
		"perilune: not done yet; `perilune status` shows which caches are late, Ctrl-C ends this wait and "
		"not the reload\n");
}

int cmd_reload(const struct options *options)
{
	struct buf answer, where;
	buf_init(&answer, 0);
	buf_init(&where, 0);
	int code = remote_ask(options, "reload", 0, tell_slow, &where, &answer);
	if (!code) {
		struct json_slice outcome = json_trim(answer.data, answer.length);
		bool json = options->output && !strcmp(options->output, "json");
		bool failed = !json_string_equals(json_get(outcome, "error"), "");
		if (json)
			fwrite(answer.data, 1, answer.length, stdout);
		else
			print_counts(outcome, buf_text(&where));
		if (failed)
			print_failure(outcome, buf_text(&where));
		code = failed ? EXIT_FAILED : EXIT_STOPPED;
	}
	buf_fini(&where);
	buf_fini(&answer);
	return code;
}
