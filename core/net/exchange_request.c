#include "net/exchange_private.h"

#include <ctype.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/loop_ev.h"

ALLOC_TYPE(request_type, "exchange_request");

#define LOOK_AGAIN 0.05 /* seconds; a TLS client says goodbye before it closes */
#define SLOW_STEP 0.05  /* seconds between two pieces of a slow answer */
#define NO_CUT SIZE_MAX
#define ANY_TIMEOUT 60u

/* --- sleeping and waking --- */

void exchange_request_sleep(struct request *request)
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

void exchange_request_stop(struct request *request)
{
	stop_looking(request);
	loop_timer_stop(request->exchange->loop, &request->slow);
}

/* libmicrohttpd looks at it when it is run next: by a job, so that its callbacks do not run inside the caller. */
static void wake(struct request *request)
{
	if (!request->asleep)
		return;
	request->asleep = false;
	exchange_request_stop(request);
	MHD_resume_connection(request->connection);
	loop_post(request->exchange->loop, &request->exchange->resume);
}

void exchange_request_doom(struct request *request)
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
		exchange_request_doom(request);
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

static int port_of_client(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	if (getpeername(fd, (struct sockaddr *)&address, &length))
		return 0;
	/* The port stands at the same place in both families. */
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

struct request *exchange_request_new(struct exchange *exchange, struct MHD_Connection *connection, const char *method,
				     const char *path)
{
	struct request *request = alloc_object(&request_type, sizeof(*request));
	request->exchange = exchange;
	request->connection = connection;
	request->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	request->client_port = port_of_client(request->fd);
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

void exchange_request_free(struct request *request)
{
	list_remove(&request->node);
	list_remove(&request->ready);
	exchange_request_stop(request);
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

/* --- the body of an answer --- */

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
	exchange_request_sleep(request);
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

/* libmicrohttpd 0.9.75 lets go of a connection whose answer breaks off only when it looks at it once more, and then,
 * while an older connection is idle, it never looks. Those with a time-out of their own it looks at each time. */
static ssize_t break_off(const struct request *request)
{
	MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, ANY_TIMEOUT);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t on_read(void *data, uint64_t position, char *bytes, size_t size)
{
	(void)position;
	struct request *request = data;
	if (request->doomed)
		return break_off(request);
	if (request->silent)
		return wait_for_more(request);
	size_t count = min(min(request->out.length - request->taken, allowance(request)), size);
	if (count) {
		take_out(request, bytes, count);
		return (ssize_t)count;
	}
	if (request->sent == request->cut_after)
		return break_off(request);
	if (request->ended && request->taken == request->out.length)
		return MHD_CONTENT_READER_END_OF_STREAM;
	return wait_for_more(request);
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
	exchange_request_doom(request);
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
