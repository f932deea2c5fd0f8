#include "net/exchange.h"

#include <ctype.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>
#include <microhttpd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/listen.h"
#include "net/loop_ev.h"

ALLOC_TYPE(exchange_type, "exchange");
ALLOC_TYPE(request_type, "exchange_request");

#define CONNECTIONS 4096
#define CONNECTION_MEMORY ((size_t)128 << 10) /* for the head of a request, and for pieces of an answer */
#define LOOK_AGAIN 0.05                       /* seconds; a TLS client says goodbye before it closes */
#define SLOW_STEP 0.05                        /* seconds between two pieces of a slow answer */
#define NO_CUT SIZE_MAX

enum step { RECEIVING, WAITING, ANSWERED };

struct request {
	struct exchange_request public; /* first: what the owner holds is this */
	struct exchange *exchange;
	struct list node;  /* in exchange->requests */
	struct list ready; /* in exchange->incoming or exchange->gone */
	struct MHD_Connection *connection;
	int fd;
	enum step step;
	bool told;      /* on_request has been called */
	bool completed; /* libmicrohttpd has let go of it: connection and fd mean nothing any more */
	bool asleep;    /* suspended: libmicrohttpd does not look at it until it is woken */
	bool doomed;    /* to be closed without more */
	ev_io closing;  /* while asleep, libmicrohttpd does not notice that the client closes */
	struct loop_timer look_again;

	struct MHD_Response *response; /* until it is queued */
	int status;
	struct buf out;
	size_t taken; /* of out */
	size_t sent;  /* of the body, in all */
	bool ended;   /* nothing more is pushed */

	size_t cut_after;
	bool silent;
	double a_second; /* 0: not slowed */
	double slow_since, slow_sent;
	struct loop_timer slow;
};

struct exchange {
	struct loop *loop;
	struct exchange_options options;
	struct MHD_Daemon *daemon;
	int port;
	ev_io ready;
	struct loop_timer timeout;
	struct loop_job job;
	struct loop_job resume;
	struct list requests, incoming, gone;
	bool closing;
};

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

/* --- sleeping and waking --- */

static void put_to_sleep(struct request *request)
{
	MHD_suspend_connection(request->connection);
	request->asleep = true;
	ev_io_start(loop_ev(request->exchange->loop), &request->closing);
}

static void stop_looking(struct request *request)
{
	ev_io_stop(loop_ev(request->exchange->loop), &request->closing);
	loop_timer_stop(request->exchange->loop, &request->look_again);
}

/* libmicrohttpd looks at it when it is run next: by a job, so that its callbacks do not run inside the caller. */
static void wake(struct request *request)
{
	if (!request->asleep)
		return;
	request->asleep = false;
	stop_looking(request);
	loop_timer_stop(request->exchange->loop, &request->slow);
	MHD_resume_connection(request->connection);
	loop_post(request->exchange->loop, &request->exchange->resume);
}

static void doom(struct request *request)
{
	if (request->completed)
		return;
	request->doomed = true;
	wake(request);
}

static bool has_closed(const struct request *request)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);
	if (getsockopt(request->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
		return true;
	return info.tcpi_state != TCP_ESTABLISHED;
}

/* Something came that nobody reads now: the client's end, or bytes in front of it. These would be told for ever, so the
 * descriptor is then looked at by time. */
static void on_closing(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)events;
	struct request *request = watcher->data;
	ev_io_stop(ev, watcher);
	loop_timer_start(request->exchange->loop, &request->look_again, has_closed(request) ? 0 : LOOK_AGAIN);
}

static void on_look_again(void *data)
{
	struct request *request = data;
	if (!request->asleep)
		return;
	if (has_closed(request))
		doom(request);
	else
		loop_timer_start(request->exchange->loop, &request->look_again, LOOK_AGAIN);
}

/* --- what a request is --- */

static enum MHD_Result collect(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct exchange_pairs *pairs = data;
	pairs->items = alloc_resize(pairs->items, (pairs->count + 1) * sizeof(*pairs->items));
	struct exchange_pair *pair = &pairs->items[pairs->count++];
	*pair = (struct exchange_pair){alloc_string(name), alloc_string(value ? value : "")};
	for (char *at = pair->name; kind == MHD_HEADER_KIND && *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return MHD_YES;
}

static void free_pairs(struct exchange_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		alloc_free(pairs->items[i].name);
		alloc_free(pairs->items[i].value);
	}
	alloc_free(pairs->items);
}

static void on_slow(void *data)
{
	wake(data);
}

static struct request *request_new(struct exchange *exchange, struct MHD_Connection *connection, const char *method,
				   const char *path)
{
	struct request *request = alloc_object(&request_type, sizeof(*request));
	request->exchange = exchange;
	request->connection = connection;
	request->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	request->public.method = alloc_string(method);
	request->public.path = alloc_string(path);
	buf_init(&request->public.body, exchange->options.body_limit);
	buf_init(&request->out, 0);
	request->cut_after = NO_CUT;
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, collect, &request->public.query);
	MHD_get_connection_values(connection, MHD_HEADER_KIND, collect, &request->public.headers);
	ev_io_init(&request->closing, on_closing, request->fd, EV_READ);
	request->closing.data = request;
	loop_timer_init(&request->look_again, on_look_again, request);
	loop_timer_init(&request->slow, on_slow, request);
	list_init(&request->ready);
	list_init(&request->node);
	list_add_tail(&exchange->requests, &request->node);
	return request;
}

static void request_free(struct request *request)
{
	list_remove(&request->node);
	list_remove(&request->ready);
	stop_looking(request);
	loop_timer_stop(request->exchange->loop, &request->slow);
	if (request->response)
		MHD_destroy_response(request->response);
	free_pairs(&request->public.query);
	free_pairs(&request->public.headers);
	buf_fini(&request->public.body);
	buf_fini(&request->out);
	alloc_free(request->public.method);
	alloc_free(request->public.path);
	alloc_object_free(&request_type, request);
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
	if (!request) {
		*state = request_new(data, connection, method, path);
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
	put_to_sleep(request);
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
	stop_looking(request);
	loop_timer_stop(exchange->loop, &request->slow);
	if (!exchange->closing)
		post(exchange, &exchange->gone, request);
}

/* How many bytes of body may go now. */
static size_t allowance(struct request *request)
{
	size_t left = request->cut_after - request->sent;
	if (!request->a_second)
		return left;
	double earned = (clock_now() - request->slow_since) * request->a_second;
	double free = floor(earned - request->slow_sent);
	return free <= 0 ? 0 : free < (double)left ? (size_t)free : left;
}

static ssize_t wait_for_more(struct request *request)
{
	put_to_sleep(request);
	bool only_slow = request->a_second && !request->silent && request->taken < request->out.length;
	if (only_slow)
		loop_timer_start(request->exchange->loop, &request->slow, fmax(SLOW_STEP, 1 / request->a_second));
	return 0;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void take_out(struct request *request, char *bytes, size_t count)
{
	memcpy(bytes, request->out.data + request->taken, count);
	request->taken += count;
	request->sent += count;
	request->slow_sent += (double)count;
	if (request->taken == request->out.length || request->taken > request->out.length / 2) {
		buf_consume(&request->out, request->taken);
		request->taken = 0;
	}
}

static ssize_t on_read(void *data, uint64_t position, char *bytes, size_t size)
{
	(void)position;
	struct request *request = data;
	if (request->doomed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (request->silent)
		return wait_for_more(request);
	size_t count = min(min(request->out.length - request->taken, allowance(request)), size);
	if (count) {
		take_out(request, bytes, count);
		return (ssize_t)count;
	}
	if (request->sent == request->cut_after)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (request->ended && request->taken == request->out.length)
		return MHD_CONTENT_READER_END_OF_STREAM;
	return wait_for_more(request);
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
		request_free(request);
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

/* Nothing may be suspended when libmicrohttpd stops. */
void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	exchange->closing = true;
	LIST_EACH (&exchange->requests, node)
		doom(LIST_ENTRY(node, struct request, node));
	MHD_run(exchange->daemon);
	ev_io_stop(loop_ev(exchange->loop), &exchange->ready);
	loop_timer_stop(exchange->loop, &exchange->timeout);
	MHD_stop_daemon(exchange->daemon);
	while (!list_is_empty(&exchange->requests))
		request_free(LIST_ENTRY(exchange->requests.next, struct request, node));
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

bool exchange_is_idle(const struct exchange *exchange)
{
	LIST_EACH (&exchange->requests, node)
		if (!is_at_rest(LIST_ENTRY(node, struct request, node)))
			return false;
	return true;
}

/* --- answers --- */

static struct request *of(struct exchange_request *request)
{
	return (struct request *)(void *)request;
}

static void add_headers(struct MHD_Response *response, const char *const *headers)
{
	for (; headers && *headers; headers++) {
		const char *colon = strchr(*headers, ':');
		char *name = alloc_text(*headers, (size_t)(colon - *headers));
		MHD_add_response_header(response, name, colon + 1 + strspn(colon + 1, " "));
		alloc_free(name);
	}
}

static void respond(struct request *request, int status, const char *const *headers, uint64_t size)
{
	request->step = ANSWERED;
	request->status = status;
	request->response = MHD_create_response_from_callback(size, 32 << 10, on_read, request, NULL);
	add_headers(request->response, headers);
	wake(request);
}

void exchange_answer(struct exchange_request *public, int status, const char *const *headers, const char *body,
		     size_t length)
{
	struct request *request = of(public);
	if (request->completed)
		return;
	buf_append(&request->out, body, length);
	request->ended = true;
	respond(request, status, headers, length);
}

void exchange_open(struct exchange_request *public, int status, const char *const *headers)
{
	if (!of(public)->completed)
		respond(of(public), status, headers, MHD_SIZE_UNKNOWN);
}

void exchange_push(struct exchange_request *public, const char *bytes, size_t length)
{
	struct request *request = of(public);
	if (request->completed || request->ended)
		return;
	buf_append(&request->out, bytes, length);
	wake(request);
}

void exchange_end(struct exchange_request *public)
{
	of(public)->ended = true;
	wake(of(public));
}

/* --- faults --- */

void exchange_cut(struct exchange_request *public, size_t after)
{
	struct request *request = of(public);
	request->cut_after = request->sent > after ? request->sent : after;
	if (request->step == ANSWERED)
		wake(request);
}

void exchange_cut_here(struct exchange_request *public)
{
	struct request *request = of(public);
	exchange_cut(public, request->sent + request->out.length - request->taken);
}

/* Linux takes this as "disconnect", and sends RST. */
void exchange_reset(struct exchange_request *public)
{
	struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	struct request *request = of(public);
	if (request->completed)
		return;
	connect(request->fd, &nowhere, sizeof(nowhere));
	doom(request);
}

void exchange_silence(struct exchange_request *public)
{
	of(public)->silent = true;
}

void exchange_slow(struct exchange_request *public, double a_second)
{
	struct request *request = of(public);
	request->a_second = a_second;
	request->slow_since = clock_now();
	request->slow_sent = 0;
}
