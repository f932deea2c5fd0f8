#include "net/exchange.h"

#include <stdint.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/exchange_private.h"
#include "net/listen.h"
#include "net/loop_ev.h"

ALLOC_TYPE(exchange_type, "exchange");

#define CONNECTIONS 4096
#define CONNECTION_MEMORY ((size_t)128 << 10) /* for the head of a request, and for pieces of an answer */

/* --- libmicrohttpd on the loop --- */

static void pump(struct exchange *exchange)
{
	MHD_UNSIGNED_LONG_LONG milliseconds;
	MHD_run(exchange->daemon);
	if (MHD_get_timeout(exchange->daemon, &milliseconds) == MHD_YES)
		loop_timer_start(exchange->loop, &exchange->timeout, (double)milliseconds / 1000);
	else
		loop_timer_stop(exchange->loop, &exchange->timeout);
}

/* Of its timer and of its job. */
static void on_pump(void *data)
{
	pump(data);
}

static void on_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev, (void)events;
	pump(watcher->data);
}

/* --- libmicrohttpd's callbacks --- */

static void post(struct exchange *exchange, struct list *list, struct request *request)
{
	list_remove(&request->ready);
	list_add_tail(list, &request->ready);
	loop_post(exchange->loop, &exchange->job);
}

static void take_body(struct request *request, const char *bytes, size_t length)
{
	if (request->public.too_large || buf_append(&request->public.body, bytes, length) == 0)
		return;
	request->public.too_large = true;
	buf_fini(&request->public.body);
}

static enum MHD_Result queue(struct request *request)
{
	enum MHD_Result result = MHD_queue_response(request->connection, (unsigned)request->status, request->response);
	MHD_destroy_response(request->response);
	request->response = NULL;
	return result;
}

/* Called for the head, for each piece of the body, at the end of the request, and again when it is woken. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *path, const char *method,
				  const char *version, const char *bytes, size_t *length, void **state)
{
	(void)version;
	struct request *request = *state;
	if (((struct exchange *)data)->closing)
		return MHD_NO;
	if (!request) {
		*state = exchange_request_new(data, connection, method, path);
		return MHD_YES;
	}
	if (*length) {
		take_body(request, bytes, *length);
		*length = 0;
		return MHD_YES;
	}
	if (request->doomed)
		return MHD_NO;
	if (request->step == ANSWERED)
		return queue(request);
	request->step = WAITING;
	exchange_request_sleep(request);
	post(data, &request->exchange->incoming, request);
	return MHD_YES;
}

static void on_completed(void *data, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	(void)connection, (void)code;
	struct exchange *exchange = data;
	struct request *request = *state;
	if (!request)
		return;
	*state = NULL;
	request->completed = true;
	exchange_request_stop(request);
	if (exchange->closing)
		return;
	post(exchange, &exchange->gone, request);
	loop_post(exchange->loop, &exchange->resume);
}

/* libmicrohttpd would write to stderr, past the log. */
static void on_log(void *data, const char *format, va_list arguments)
{
	(void)data, (void)format, (void)arguments;
}

/* --- events, from the drain --- */

static void tell_requests(struct exchange *exchange)
{
	struct list *node;
	while ((node = list_pop(&exchange->incoming))) {
		struct request *request = LIST_ENTRY(node, struct request, ready);
		request->told = true;
		exchange->options.on_request(exchange->options.data, &request->public);
	}
}

static void tell_gone(struct exchange *exchange)
{
	struct list *node;
	while ((node = list_pop(&exchange->gone))) {
		struct request *request = LIST_ENTRY(node, struct request, ready);
		if (request->told)
			exchange->options.on_gone(exchange->options.data, &request->public);
		exchange_request_free(request);
	}
}

static void on_job(void *data)
{
	tell_requests(data);
	tell_gone(data);
}

/* --- making and freeing --- */

static struct MHD_Daemon *start_daemon(struct exchange *exchange, int fd)
{
	bool tls = exchange->options.cert != NULL;
	struct MHD_OptionItem secrets[] = {
	    {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, (void *)(uintptr_t)exchange->options.cert},
	    {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)exchange->options.key},
	    {MHD_OPTION_END, 0, NULL}};
	unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0);
	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, exchange, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, exchange,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				CONNECTION_MEMORY, MHD_OPTION_ARRAY, secrets, MHD_OPTION_END);
}

static void watch_daemon(struct exchange *exchange)
{
	int fd = MHD_get_daemon_info(exchange->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	ev_io_init(&exchange->ready, on_ready, fd, EV_READ);
	exchange->ready.data = exchange;
	ev_io_start(loop_ev(exchange->loop), &exchange->ready);
}

struct exchange *exchange_new(struct loop *loop, const struct exchange_options *options, struct err *err)
{
	int fd = listen_open(options->address, err);
	if (fd < 0)
		return NULL;
	struct exchange *exchange = alloc_object(&exchange_type, sizeof(*exchange));
	exchange->loop = loop;
	exchange->options = *options;
	exchange->port = listen_port(fd);
	list_init(&exchange->requests);
	list_init(&exchange->incoming);
	list_init(&exchange->gone);
	loop_timer_init(&exchange->timeout, on_pump, exchange);
	loop_job_init(&exchange->job, on_job, exchange);
	loop_job_init(&exchange->resume, on_pump, exchange);
	exchange->daemon = start_daemon(exchange, fd);
	if (!exchange->daemon) {
		err_set(err, "", "--listen %s: the HTTP server could not start (a bad certificate or key?)",
			options->address);
		close(fd);
		alloc_object_free(&exchange_type, exchange);
		return NULL;
	}
	watch_daemon(exchange);
	return exchange;
}

/* Nothing may be suspended when libmicrohttpd stops, nor become so while it lets go of what there is. */
void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	exchange->closing = true;
	LIST_EACH (&exchange->requests, node)
		exchange_request_doom(LIST_ENTRY(node, struct request, node));
	MHD_run(exchange->daemon);
	ev_io_stop(loop_ev(exchange->loop), &exchange->ready);
	loop_timer_stop(exchange->loop, &exchange->timeout);
	MHD_stop_daemon(exchange->daemon);
	while (!list_is_empty(&exchange->requests))
		exchange_request_free(LIST_ENTRY(exchange->requests.next, struct request, node));
	loop_job_cancel(&exchange->job);
	loop_job_cancel(&exchange->resume);
	alloc_object_free(&exchange_type, exchange);
}

int exchange_port(const struct exchange *exchange)
{
	return exchange->port;
}

static bool is_at_rest(const struct request *request)
{
	if (request->silent || request->a_second)
		return true;
	return request->asleep && request->step == ANSWERED && request->taken == request->out.length;
}

size_t exchange_count(const struct exchange *exchange)
{
	size_t count = 0;
	LIST_EACH (&exchange->requests, node)
		count++;
	return count;
}

bool exchange_is_at_rest(const struct exchange *exchange, int client_port, bool headed, size_t sent)
{
	LIST_EACH (&exchange->requests, node) {
		const struct request *request = LIST_ENTRY(node, struct request, node);
		if (request->client_port == client_port && !request->completed)
			return is_at_rest(request) && (request->step == ANSWERED) == headed && request->sent == sent;
	}
	return false;
}

bool exchange_is_idle(const struct exchange *exchange)
{
	LIST_EACH (&exchange->requests, node)
		if (!is_at_rest(LIST_ENTRY(node, struct request, node)))
			return false;
	return true;
}
