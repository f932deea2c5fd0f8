/* child_driver [-o OUTPUT_LIMIT] [-e ERRORS_LIMIT] [-t SECONDS] [-n TIMES] PROGRAM [ARGUMENT]...: runs a program so
 * often, one after another, and says how the last run ended, as JSON lines. SIGUSR1 cancels the run. The environment of
 * the program is A=b and PATH alone.
 *
 * Its own descriptors, ignored and blocked signals are such that a child would notice an inherited one. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/child.h"

static struct loop *loop;
static struct child *child;
static struct child_options options = {.output_limit = 1000, .errors_limit = 100, .timeout = 60};
static int left = 1;

static void print_text(const char *key, const struct buf *bytes)
{
	struct buf text;
	buf_init(&text, 0);
	buf_append_json_string(&text, buf_text(bytes), bytes->length);
	printf(",\"%s\":%s", key, text.data);
	buf_fini(&text);
}

static void start(void);

static void on_done(void *data, const struct child_result *result)
{
	static const char *const ends[] = {"exited", "signaled", "timeout", "too large"};
	(void)data;
	child = NULL;
	if (--left) {
		start();
		return;
	}
	printf("{\"end\":\"%s\",\"code\":%d", ends[result->end], result->code);
	print_text("output", result->output);
	print_text("errors", result->errors);
	printf("}\n");
	loop_stop(loop);
}

static void start(void)
{
	struct err err;
	child = child_start(loop, &options, on_done, NULL, &err);
	if (child)
		return;
	bool absent = errno == ENOENT;
	printf("{\"err\":\"%s\",\"absent\":%s}\n", err.message, absent ? "true" : "false");
	loop_stop(loop);
}

static void cancel(void *data)
{
	(void)data;
	child_cancel(child);
	child = NULL;
	loop_stop(loop);
}

static int count_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void be_conspicuous(void)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGINT, SIG_IGN);
	dup2(STDERR_FILENO, 77);
}

int main(int argc, char **argv)
{
	struct err err;
	for (int c; (c = getopt(argc, argv, "+o:e:t:n:")) != -1;) {
		if (c == 'o')
			options.output_limit = (size_t)atol(optarg);
		else if (c == 'e')
			options.errors_limit = (size_t)atol(optarg);
		else if (c == 't')
			options.timeout = atof(optarg);
		else
			left = atoi(optarg);
	}
	char *path = alloc_format("PATH=%s", getenv("PATH"));
	const char *environment[] = {"A=b", path, NULL};
	options.argv = (const char *const *)argv + optind;
	options.environment = environment;
	be_conspicuous();
	loop = loop_new(&err);
	int descriptors = count_descriptors();
	loop_on_signal(loop, SIGUSR1, cancel, NULL);
	start();
	loop_run(loop);
	loop_on_signal(loop, SIGUSR1, NULL, NULL);
	bool reaped = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
	printf("{\"reaped\":%s,\"descriptors\":%d", reaped ? "true" : "false", count_descriptors() - descriptors);
	loop_free(loop);
	alloc_free(path);
	printf(",\"live\":%ld}\n", alloc_live(stderr));
	return 0;
}
