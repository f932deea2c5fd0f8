#include "net/server.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/alloc.h"
#include "net/listen.h"

ALLOC_TYPE(server_type, "server");

#define CONNECTIONS 128
#define CONNECTIONS_OF_ONE 64 /* clients of one address: the rest is for the probes */
#define IDLE_SECONDS 5
#define CONNECTION_MEMORY ((size_t)16 << 10) /* for the head of a request; more is answered with 431 */
#define LOOP_SECONDS 1.0
#define LOOP_SLICE 0.1 /* the wait for the loop is cut in pieces, so that server_free does not wait for it */

struct server {
	struct loop *loop;
	const struct server_page *pages;
	void *data;
	struct MHD_Daemon *daemon;
	int port;
	atomic_bool closing;
};

static const char *query_value(void *request, const char *name)
{
	const char *value = NULL;
	size_t length;
	if (MHD_lookup_connection_value_n(request, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &length) !=
	    MHD_YES)
		return NULL;
	return value ? value : "";
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct server_answer *answer)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
	    answer->body.length, (void *)(uintptr_t)buf_text(&answer->body), MHD_RESPMEM_MUST_COPY);
	buf_fini(&answer->body);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", answer->content_type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(connection, (unsigned)answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static void answer_init(struct server_answer *answer)
{
	answer->status = MHD_HTTP_OK;
	answer->content_type = "text/plain; charset=utf-8";
	buf_init(&answer->body, 0);
}

static void answer_plain(struct server_answer *answer, int status, const char *text)
{
	answer->status = status;
	buf_append_format(&answer->body, "%s\n", text);
}

struct making {
	struct server *server;
	const struct server_page *page;
	struct MHD_Connection *connection;
	struct server_answer *answer;
};

static void make(void *data)
{
	struct making *making = data;
	making->page->make(making->server->data, query_value, making->connection, making->answer);
}

static void make_on_loop(struct making *making)
{
	for (double waited = 0; waited < LOOP_SECONDS && !atomic_load(&making->server->closing); waited += LOOP_SLICE)
		if (loop_call(making->server->loop, make, making, LOOP_SLICE) == 0)
			return;
	answer_plain(making->answer, MHD_HTTP_SERVICE_UNAVAILABLE, "the event loop is busy");
}

static const struct server_page *find_page(const struct server *server, const char *path)
{
	for (const struct server_page *page = server->pages; page->path; page++)
		if (strcmp(page->path, path) == 0)
			return page;
	return NULL;
}

static void make_answer(struct server *server, struct MHD_Connection *connection, const char *path, const char *method,
			struct server_answer *answer)
{
	const struct server_page *page = find_page(server, path);
	struct making making = {server, page, connection, answer};
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		answer_plain(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only");
	else if (!page)
		answer_plain(answer, MHD_HTTP_NOT_FOUND, "no such page");
	else if (page->threaded)
		make(&making);
	else
		make_on_loop(&making);
}

/* Called once for the head and again at the end of the request, when an answer may be sent. A body is read and dropped.
 */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *path, const char *method,
				  const char *version, const char *body, size_t *body_length, void **state)
{
	static int head_seen;
	(void)version, (void)body;
	if (!*state) {
		*state = &head_seen;
		return MHD_YES;
	}
	if (*body_length) {
		*body_length = 0;
		return MHD_YES;
	}
	struct server_answer answer;
	answer_init(&answer);
	make_answer(data, connection, path, method, &answer);
	return send_answer(connection, &answer);
}

/* libmicrohttpd would write to stderr, past the log. */
static void on_log(void *data, const char *format, va_list arguments)
{
	(void)data, (void)format, (void)arguments;
}

/* A thread for each connection: one that waits for the loop holds up no other, least of all the page that says that the
 * loop stalls. */
static struct MHD_Daemon *start_daemon(struct server *server, int fd)
{
	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_AUTO |
				    MHD_USE_ERROR_LOG | MHD_USE_ITC,
				0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
				MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CONNECTIONS_OF_ONE,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_END);
}

struct server *server_new(struct loop *loop, const char *address, const struct server_page *pages, void *data,
			  struct err *err)
{
	int fd = listen_open(address, err);
	if (fd < 0)
		return NULL;
	struct server *server = alloc_object(&server_type, sizeof(*server));
	server->loop = loop;
	server->pages = pages;
	server->data = data;
	server->port = listen_port(fd);
	server->daemon = start_daemon(server, fd);
	if (!server->daemon) {
		err_set(err, "", "--listen %s: the HTTP server could not start its thread", address);
		close(fd);
		alloc_object_free(&server_type, server);
		return NULL;
	}
	return server;
}

void server_free(struct server *server)
{
	atomic_store(&server->closing, true);
	MHD_stop_daemon(server->daemon);
	alloc_object_free(&server_type, server);
}

int server_port(const struct server *server)
{
	return server->port;
}
