#include "net/ask.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/socket_file.h"

#define CONNECT_PAUSE 50 /* milliseconds, where too many wait */
#define LONGEST_HEAD 64

struct ask {
	const char *path;
	double deadline;
	double slow_at; /* INFINITY once on_slow was called, or where there is none */
	void (*on_slow)(void);
	int fd;
};

static int milliseconds_until(double time)
{
	double left = time - clock_real();
	return isinf(left) ? -1 : left > 0 ? (int)fmin(ceil(left * 1000), 1e6) : 0;
}

static int milliseconds_left(const struct ask *ask)
{
	return milliseconds_until(ask->deadline);
}

static void tell_slow(struct ask *ask)
{
	if (milliseconds_until(ask->slow_at) != 0)
		return;
	ask->slow_at = INFINITY;
	ask->on_slow();
}

static int fail(const struct ask *ask, const char *reason, const char *what, struct err *err)
{
	return err_set(err, reason, "%s: %s", ask->path, what);
}

static int fail_with_errno(const struct ask *ask, struct err *err)
{
	if (errno == ECONNREFUSED || errno == ENOENT)
		return fail(ask, "Connection", "no host listens there", err);
	return fail(ask, "", errno == ENAMETOOLONG ? "the path of a socket has at most 107 bytes" : strerror(errno),
		    err);
}

/* 0 when there is something to do, or -1 with err at the deadline. */
static int wait_for(struct ask *ask, short events, struct err *err)
{
	struct pollfd wait = {.fd = ask->fd, .events = events};
	for (;;) {
		int ready = poll(&wait, 1, milliseconds_until(fmin(ask->deadline, ask->slow_at)));
		tell_slow(ask);
		if (ready > 0)
			return 0;
		if (ready == 0 && milliseconds_left(ask) == 0)
			return fail(ask, "Timeout", "the host does not answer", err);
		if (ready < 0 && errno != EINTR)
			return fail_with_errno(ask, err);
	}
}

static int connect_to(struct ask *ask, struct err *err)
{
	while ((ask->fd = socket_file_connect(ask->path)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return fail_with_errno(ask, err);
		if (milliseconds_left(ask) == 0)
			return fail(ask, "Timeout", "the host does not answer", err);
		poll(NULL, 0, CONNECT_PAUSE);
	}
	return 0;
}

static int send_request(struct ask *ask, const char *request, struct err *err)
{
	struct buf line;
	int result = 0;
	buf_init(&line, 0);
	buf_append_format(&line, "%s\n", request);
	while (!result && line.length) {
		ssize_t sent = send(ask->fd, line.data, line.length, MSG_NOSIGNAL);
		if (sent > 0)
			buf_consume(&line, (size_t)sent);
		else if (errno == EAGAIN || errno == EINTR)
			result = wait_for(ask, POLLOUT, err);
		else
			result = fail_with_errno(ask, err);
	}
	buf_fini(&line);
	return result;
}

/* Takes what has come, or waits for it. 1 at the end of the stream, -1 with err. */
static int receive(struct ask *ask, struct buf *in, struct err *err)
{
	char room[16384];
	ssize_t got = recv(ask->fd, room, sizeof(room), 0);
	if (got > 0)
		return buf_append(in, room, (size_t)got) ? fail(ask, "TooLarge", "the answer is too large", err) : 0;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return wait_for(ask, POLLIN, err);
	return got == 0 || errno == ECONNRESET ? 1 : fail_with_errno(ask, err);
}

/* in is "ok LENGTH\n…" or "refused LENGTH\n…", to its end. */
static int judge(const struct ask *ask, const struct buf *in, struct buf *out, struct err *err)
{
	const char *newline = in->length ? memchr(in->data, '\n', in->length) : NULL;
	bool ok = newline && !strncmp(in->data, "ok ", 3), refused = newline && !strncmp(in->data, "refused ", 8);
	if (!in->length)
		return fail(ask, "Connection", "the host ended before it answered", err);
	if (!ok && !refused)
		return fail(ask, "", "what answers is no host", err);
	const char *body = newline + 1;
	size_t length = in->length - (size_t)(body - in->data);
	if (strtoull(strchr(in->data, ' '), NULL, 10) != length)
		return fail(ask, "Connection", "the host's answer was cut", err);
	if (refused)
		return err_set(err, "", "%.*s", (int)fmin((double)length, 900), body);
	return buf_append(out, body, length) ? fail(ask, "TooLarge", "the answer is too large", err) : 0;
}

int ask_local(const char *path, const char *request, double seconds, void (*on_slow)(void), struct buf *out,
	      struct err *err)
{
	struct ask ask = {.path = path, .on_slow = on_slow, .fd = -1};
	ask.deadline = seconds > 0 ? clock_real() + seconds : INFINITY;
	ask.slow_at = on_slow ? clock_real() + ASK_PATIENCE : INFINITY;
	struct buf in;
	int result = connect_to(&ask, err);
	buf_init(&in, out->limit ? out->limit + LONGEST_HEAD : 0);
	if (!result)
		result = send_request(&ask, request, err);
	while (!result)
		result = receive(&ask, &in, err);
	if (result > 0)
		result = judge(&ask, &in, out, err);
	if (ask.fd >= 0)
		close(ask.fd);
	buf_fini(&in);
	return result;
}
