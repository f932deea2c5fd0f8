/* local_driver PATH: a server of core/net/local.h, until SIGTERM. Its requests: "echo TEXT"; "big N", answered by N
 * bytes; "no", refused; "later", answered when "now" comes; "advance N", which moves the clock by N seconds.
 *
 * local_driver PATH REQUEST SECONDS: the client of core/net/ask.h; prints the answer, or "error REASON: MESSAGE". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/ask.h"
#include "net/local.h"

static struct loop *loop;
static struct local_call *later[100];
static size_t later_count;

static void answer_text(struct local_call *call, bool ok, const char *text)
{
	local_answer(call, ok, text, strlen(text));
}

static void answer_big(struct local_call *call, size_t length)
{
	char *bytes = memset(alloc_zero(length), 'x', length);
	local_answer(call, true, bytes, length);
	alloc_free(bytes);
}

static void on_request(void *data, struct local_call *call, const char *line)
{
	(void)data;
	if (!strncmp(line, "big ", 4)) {
		answer_big(call, strtoul(line + 4, NULL, 10));
	} else if (!strcmp(line, "later") && later_count < 100) {
		later[later_count++] = call;
		puts("waits");
	} else if (!strcmp(line, "now")) {
		while (later_count)
			answer_text(later[--later_count], true, "at last");
		answer_text(call, true, "now");
	} else if (!strncmp(line, "advance ", 8)) {
		clock_stop();
		clock_set(clock_now() + atof(line + 8));
		answer_text(call, true, "");
	} else {
		bool echo = !strncmp(line, "echo ", 5);
		answer_text(call, echo, echo ? line + 5 : "no");
	}
}

static void stop(void *data)
{
	(void)data;
	loop_stop(loop);
}

static int serve(const char *path)
{
	struct err err;
	struct local_options options = {path, on_request, NULL};
	loop = loop_new(&err);
	struct local *local = local_new(loop, &options, &err);
	if (local) {
		loop_on_signal(loop, SIGTERM, stop, NULL);
		puts("listening");
		loop_run(loop);
	} else {
		printf("error %s\n", err.message);
	}
	local_free(local);
	loop_free(loop);
	return alloc_live(stderr) ? 1 : 0;
}

static int ask(const char *path, const char *request, double seconds)
{
	struct buf answer;
	struct err err;
	buf_init(&answer, (size_t)1 << 20);
	if (ask_local(path, request, seconds, NULL, &answer, &err))
		printf("error %s: %s\n", err.reason, err.message);
	else
		printf("%s\n", buf_text(&answer));
	buf_fini(&answer);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 4)
		return ask(argv[1], argv[2], atof(argv[3]));
	return argc == 2 ? serve(argv[1]) : 2;
}
