/* server_driver ADDRESS: the HTTP pages of core/net/server.h. Prints "listening PORT", and at SIGTERM how long the end
 * took. With "in-use" as a second argument it starts a second server on the same port first, and prints its error. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop.h"
#include "net/server.h"

typedef const char *(*query_fn)(void *request, const char *name);

static pthread_t loop_thread;

static void say_thread(struct buf *body)
{
	buf_append_text(body, pthread_equal(pthread_self(), loop_thread) ? "on the loop" : "on another thread");
}

static void make_where(void *data, query_fn query, void *request, struct server_answer *answer)
{
	(void)data, (void)query, (void)request;
	say_thread(&answer->body);
}

/* Keeps the loop for that long, and prints when that begins. */
static void make_block(void *data, query_fn query, void *request, struct server_answer *answer)
{
	(void)data;
	const char *seconds = query(request, "seconds");
	printf("blocking\n");
	fflush(stdout);
	usleep((useconds_t)(atof(seconds ? seconds : "1") * 1e6));
	say_thread(&answer->body);
}

static void make_query(void *data, query_fn query, void *request, struct server_answer *answer)
{
	static const char *const names[] = {"a", "b", "verbose", "absent"};
	(void)data;
	answer->status = 418;
	answer->content_type = "application/x-query";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = query(request, names[i]);
		buf_append_format(&answer->body, "%s=%s;", names[i], value ? value : "NULL");
	}
}

static void make_big(void *data, query_fn query, void *request, struct server_answer *answer)
{
	(void)data, (void)query, (void)request;
	for (int i = 0; i < 100000; i++)
		buf_append_text(&answer->body, "0123456789");
}

static const struct server_page pages[] = {
    {"/threaded", true, make_where}, {"/loop", false, make_where}, {"/block", false, make_block},
    {"/query", false, make_query},   {"/big", false, make_big},    {NULL, false, NULL},
};

static void stop(void *data)
{
	loop_stop(data);
}

static void try_second(struct loop *loop, int port)
{
	struct err err;
	char address[64];
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	printf("second: %s\n", server_new(loop, address, pages, NULL, &err) ? "listens too" : err.message);
}

int main(int argc, char **argv)
{
	struct err err;
	struct loop *loop = loop_new(&err);
	loop_thread = pthread_self();
	struct server *server = server_new(loop, argc > 1 ? argv[1] : "127.0.0.1:0", pages, NULL, &err);
	if (!server) {
		fprintf(stderr, "%s\n", err.message);
		loop_free(loop);
		return 1;
	}
	if (argc > 2)
		try_second(loop, server_port(server));
	printf("listening %d\n", server_port(server));
	fflush(stdout);
	loop_on_signal(loop, SIGTERM, stop, loop);
	loop_run(loop);
	double before = clock_now();
	server_free(server);
	printf("ended within %s\n", clock_now() - before < 0.9 ? "0.9 s" : "more");
	loop_free(loop);
	return alloc_live(stderr) ? 1 : 0;
}
