#include "net/local.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "net/loop_ev.h"
#include "net/socket_file.h"

ALLOC_TYPE(local_type, "local server");
ALLOC_TYPE(call_type, "local call");

#define ACCEPT_PAUSE 1.0 /* seconds, when there are no descriptors left */

enum step { READING, ASKED, ANSWERING };

struct local_call {
	struct list node; /* in local->calls */
	struct local *local;
	enum step step;
	int fd;
	ev_io watcher; /* for reading, then for writing; stopped while the owner thinks */
	struct loop_job job;
	struct loop_timer patience;
	struct buf in, out;
};

struct local {
	struct loop *loop;
	struct local_options options;
	struct socket_file file;
	int fd;
	ev_io watcher; /* stopped while there are LOCAL_CLIENTS calls */
	struct loop_job job;
	struct loop_timer pause;
	struct list calls;
	size_t count;
};

static void on_call_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev, (void)events;
	struct local_call *call = watcher->data;
	loop_post(call->local->loop, &call->job);
}

static void watch(struct local_call *call, int events)
{
	ev_io_init(&call->watcher, on_call_ready, call->fd, events);
	call->watcher.data = call;
	ev_io_start(loop_ev(call->local->loop), &call->watcher);
	loop_timer_start(call->local->loop, &call->patience, LOCAL_PATIENCE);
}

static void unwatch(struct local_call *call)
{
	ev_io_stop(loop_ev(call->local->loop), &call->watcher);
	loop_timer_stop(call->local->loop, &call->patience);
}

static void listen_on(struct local *local)
{
	ev_io_start(loop_ev(local->loop), &local->watcher);
}

static void free_call(struct local_call *call)
{
	struct local *local = call->local;
	unwatch(call);
	loop_job_cancel(&call->job);
	list_remove(&call->node);
	close(call->fd);
	buf_fini(&call->in);
	buf_fini(&call->out);
	alloc_object_free(&call_type, call);
	if (local->count-- == LOCAL_CLIENTS)
		listen_on(local);
}

static void on_patience_over(void *data)
{
	free_call(data);
}

/* The rest waits until the client has taken some. */
static void send_some(struct local_call *call)
{
	ssize_t sent;
	do
		sent = send(call->fd, call->out.data, call->out.length, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent > 0)
		buf_consume(&call->out, (size_t)sent);
	if ((sent < 0 && errno != EAGAIN) || !call->out.length) {
		free_call(call);
		return;
	}
	unwatch(call);
	watch(call, EV_WRITE);
}

void local_answer(struct local_call *call, bool ok, const char *bytes, size_t length)
{
	buf_append_format(&call->out, "%s %zu\n", ok ? "ok" : "refused", length);
	buf_append(&call->out, bytes, length);
	call->step = ANSWERING;
	send_some(call);
}

static void refuse_long_line(struct local_call *call)
{
	static const char text[] = "the request is too long";
	unwatch(call);
	local_answer(call, false, text, sizeof(text) - 1);
}

static void tell(struct local_call *call)
{
	const struct local_options *options = &call->local->options;
	*strchr(call->in.data, '\n') = '\0';
	call->step = ASKED;
	unwatch(call);
	options->on_request(options->data, call, call->in.data);
}

static void read_line(struct local_call *call)
{
	char room[LOCAL_LINE];
	ssize_t got;
	do
		got = recv(call->fd, room, sizeof(room), 0);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0 || memchr(room, '\0', (size_t)got)) {
		free_call(call);
		return;
	}
	if (buf_append(&call->in, room, (size_t)got))
		refuse_long_line(call);
	else if (strchr(call->in.data, '\n'))
		tell(call);
}

static void on_call_job(void *data)
{
	struct local_call *call = data;
	if (call->step == READING)
		read_line(call);
	else if (call->step == ANSWERING)
		send_some(call);
}

static void add_call(struct local *local, int fd)
{
	struct local_call *call = alloc_object(&call_type, sizeof(*call));
	call->local = local;
	call->fd = fd;
	loop_job_init(&call->job, on_call_job, call);
	loop_timer_init(&call->patience, on_patience_over, call);
	buf_init(&call->in, LOCAL_LINE);
	buf_init(&call->out, 0);
	list_add_tail(&local->calls, &call->node);
	local->count++;
	watch(call, EV_READ);
}

static bool is_welcome(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && (peer.uid == geteuid() || peer.uid == 0);
}

/* False when no more is to be taken for now. */
static bool take_client(struct local *local)
{
	int fd = accept4(local->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && is_welcome(fd))
		add_call(local, fd);
	else if (fd >= 0)
		close(fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		loop_timer_start(local->loop, &local->pause, ACCEPT_PAUSE);
	return fd >= 0 || errno == EINTR || errno == ECONNABORTED;
}

static void take_clients(void *data)
{
	struct local *local = data;
	while (local->count < LOCAL_CLIENTS && take_client(local))
		;
	if (local->count == LOCAL_CLIENTS || loop_timer_active(&local->pause))
		ev_io_stop(loop_ev(local->loop), &local->watcher);
}

static void on_pause_over(void *data)
{
	listen_on(data);
}

static void on_client(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev, (void)events;
	struct local *local = watcher->data;
	loop_post(local->loop, &local->job);
}

struct local *local_new(struct loop *loop, const struct local_options *options, struct err *err)
{
	struct socket_file file;
	int fd = socket_file_listen(&file, options->path, err);
	if (fd < 0)
		return NULL;
	struct local *local = alloc_object(&local_type, sizeof(*local));
	local->loop = loop;
	local->options = *options;
	local->file = file;
	local->fd = fd;
	list_init(&local->calls);
	loop_job_init(&local->job, take_clients, local);
	loop_timer_init(&local->pause, on_pause_over, local);
	ev_io_init(&local->watcher, on_client, fd, EV_READ);
	local->watcher.data = local;
	listen_on(local);
	return local;
}

void local_free(struct local *local)
{
	if (!local)
		return;
	socket_file_remove(&local->file);
	LIST_EACH (&local->calls, node)
		free_call(LIST_ENTRY(node, struct local_call, node));
	ev_io_stop(loop_ev(local->loop), &local->watcher);
	loop_job_cancel(&local->job);
	loop_timer_stop(local->loop, &local->pause);
	close(local->fd);
	alloc_object_free(&local_type, local);
}
