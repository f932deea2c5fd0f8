/* exchange_driver ADDRESS [CERT KEY]: core/net/exchange.h, told by stdin what to do with the request that came last.
 * Prints "listening PORT", then "request METHOD PATH QUERY BODY" for each request and "gone PATH" at its end. Orders, a
 * line each: "answer STATUS BODY", "open STATUS", "push TEXT", "fill BYTES" (pushes so many), "end", "cut BYTES", "cut
 * here", "reset", "silence", "slow BYTES", "idle" (prints "idle yes" or "idle no"), "quit". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/exchange.h"

static struct loop *loop;
static struct exchange *exchange;
static struct exchange_request *last;
static struct loop_timer reading;
static struct buf input;

static const char *const headers[] = {"Content-Type: text/plain", "X-Spec: a: b", NULL};

static void on_request(void *data, struct exchange_request *request)
{
	(void)data;
	last = request;
	printf("request %s %s ", request->method, request->path);
	for (size_t i = 0; i < request->query.count; i++)
		printf("%s=%s;", request->query.items[i].name, request->query.items[i].value);
	if (request->body.length > 100)
		printf(" %zu bytes\n", request->body.length);
	else
		printf(" %s\n", request->too_large ? "too large" : buf_text(&request->body));
	fflush(stdout);
}

static void on_gone(void *data, struct exchange_request *request)
{
	(void)data;
	printf("gone %s\n", request->path);
	fflush(stdout);
	if (last == request)
		last = NULL;
}

static void fill(size_t count)
{
	char *bytes = alloc_zero(count);
	memset(bytes, 'x', count);
	exchange_push(last, bytes, count);
	alloc_free(bytes);
}

static void obey(const char *word, const char *rest)
{
	const char *text = strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "";
	if (!strcmp(word, "answer"))
		exchange_answer(last, atoi(rest), headers, text, strlen(text));
	else if (!strcmp(word, "open"))
		exchange_open(last, atoi(rest), headers);
	else if (!strcmp(word, "push"))
		exchange_push(last, rest, strlen(rest));
	else if (!strcmp(word, "fill"))
		fill((size_t)atol(rest));
	else if (!strcmp(word, "end"))
		exchange_end(last);
	else if (!strcmp(word, "cut") && !strcmp(rest, "here"))
		exchange_cut_here(last);
	else if (!strcmp(word, "cut"))
		exchange_cut(last, (size_t)atol(rest));
	else if (!strcmp(word, "reset"))
		exchange_reset(last);
	else if (!strcmp(word, "silence"))
		exchange_silence(last);
	else if (!strcmp(word, "slow"))
		exchange_slow(last, atof(rest));
}

static void on_line(char *line)
{
	char *rest = strchr(line, ' ');
	if (rest)
		*rest++ = '\0';
	if (!strcmp(line, "quit")) {
		loop_stop(loop);
	} else if (!strcmp(line, "idle")) {
		printf("idle %s\n", exchange_is_idle(exchange) ? "yes" : "no");
		fflush(stdout);
	} else if (last) {
		obey(line, rest ? rest : "");
	}
}

/* Looks often enough for a spec; the loop has no watcher for a foreign descriptor. */
static void on_reading(void *data)
{
	(void)data;
	char bytes[4096], *newline;
	ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (got > 0)
		buf_append(&input, bytes, (size_t)got);
	while (input.data && (newline = memchr(input.data, '\n', input.length))) {
		*newline = '\0';
		on_line(input.data);
		buf_consume(&input, (size_t)(newline - input.data) + 1);
	}
	if (got == 0)
		loop_stop(loop);
	else
		loop_timer_start(loop, &reading, 0.005);
}

static char *read_file(const char *path)
{
	struct buf text;
	char bytes[4096];
	buf_init(&text, 0);
	FILE *file = fopen(path, "re");
	for (size_t got; file && (got = fread(bytes, 1, sizeof(bytes), file)) > 0;)
		buf_append(&text, bytes, got);
	if (file)
		fclose(file);
	return buf_take(&text);
}

int main(int argc, char **argv)
{
	struct err err;
	loop = loop_new(&err);
	char *cert = argc > 3 ? read_file(argv[2]) : NULL, *key = argc > 3 ? read_file(argv[3]) : NULL;
	struct exchange_options options = {.address = argc > 1 ? argv[1] : "127.0.0.1:0",
					   .cert = cert,
					   .key = key,
					   .body_limit = 1 << 20,
					   .on_request = on_request,
					   .on_gone = on_gone};
	exchange = exchange_new(loop, &options, &err);
	if (!exchange) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	printf("listening %d\n", exchange_port(exchange));
	fflush(stdout);
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	buf_init(&input, 0);
	loop_timer_init(&reading, on_reading, NULL);
	loop_timer_start(loop, &reading, 0);
	loop_run(loop);
	loop_timer_stop(loop, &reading);
	exchange_free(exchange);
	loop_free(loop);
	buf_fini(&input);
	alloc_free(cert);
	alloc_free(key);
	return alloc_live(stderr) ? 1 : 0;
}
