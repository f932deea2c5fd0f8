#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

#include "base/alloc.h"
#include "net/loop_ev.h"

ALLOC_TYPE(child_type, "child");

#define FIRST_FREE 3       /* descriptors of a child: 0, 1, 2 */
#define READ_AT_ONCE 65536 /* from one stream in one turn; also what a pipe holds */
#define DEATH_SECONDS 1    /* of a killed process, which may hang in the kernel */
#define NO_DESCRIPTOR (-1)

/* A pipe from the child. */
struct stream {
	ev_io watcher;
	int fd; /* NO_DESCRIPTOR once it is closed */
	struct buf bytes;
	size_t keep; /* the end of it that is kept; 0 keeps all, up to bytes' limit */
	bool overflown;
};

struct child {
	struct loop *loop;
	child_fn on_done;
	void *data;
	pid_t pid;
	int pidfd; /* readable once the process has ended */
	ev_io ended;
	struct stream output, errors;
	struct loop_job job;
	struct loop_timer deadline;
};

static void on_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev, (void)events;
	struct child *child = watcher->data;
	loop_post(child->loop, &child->job);
}

static void watch(struct child *child, ev_io *watcher, int fd)
{
	ev_io_init(watcher, on_ready, fd, EV_READ);
	watcher->data = child;
	ev_io_start(loop_ev(child->loop), watcher);
}

static void unwatch(struct child *child, ev_io *watcher, int *fd)
{
	if (*fd == NO_DESCRIPTOR)
		return;
	ev_io_stop(loop_ev(child->loop), watcher);
	close(*fd);
	*fd = NO_DESCRIPTOR;
}

static void free_child(void *object)
{
	struct child *child = object;
	struct buf *output = &child->output.bytes;
	if (output->data)
		explicit_bzero(output->data, output->length);
	buf_fini(output);
	buf_fini(&child->errors.bytes);
	alloc_object_free(&child_type, child);
}

static void leave(struct child *child)
{
	unwatch(child, &child->output.watcher, &child->output.fd);
	unwatch(child, &child->errors.watcher, &child->errors.fd);
	unwatch(child, &child->ended, &child->pidfd);
	loop_job_cancel(&child->job);
	loop_timer_stop(child->loop, &child->deadline);
	loop_free_later(child->loop, free_child, child);
}

static void take(struct stream *stream, const char *bytes, size_t length)
{
	if (buf_append(&stream->bytes, bytes, length))
		stream->overflown = true;
	if (stream->keep && stream->bytes.length > stream->keep)
		buf_consume(&stream->bytes, stream->bytes.length - stream->keep);
}

static void read_stream(struct child *child, struct stream *stream)
{
	char room[4096];
	for (size_t taken = 0; stream->fd != NO_DESCRIPTOR && taken < READ_AT_ONCE && !stream->overflown;) {
		ssize_t got = read(stream->fd, room, sizeof(room));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0) {
			unwatch(child, &stream->watcher, &stream->fd);
			break;
		}
		take(stream, room, (size_t)got);
		taken += (size_t)got;
	}
	explicit_bzero(room, sizeof(room));
}

static bool reap(const struct child *child, siginfo_t *info)
{
	int result;
	*info = (siginfo_t){0};
	while ((result = waitid(P_PID, (id_t)child->pid, info, WEXITED | WNOHANG)) && errno == EINTR)
		;
	return result == 0 && info->si_pid == child->pid;
}

/* In place, so that nothing of the child outlives the call. */
static void kill_group(struct child *child)
{
	siginfo_t info;
	struct pollfd death = {.fd = child->pidfd, .events = POLLIN};
	kill(-child->pid, SIGKILL);
	while (poll(&death, 1, DEATH_SECONDS * 1000) < 0 && errno == EINTR)
		;
	reap(child, &info);
}

static void finish(struct child *child, enum child_end end, int code)
{
	struct child_result result = {end, code, &child->output.bytes, &child->errors.bytes};
	leave(child);
	child->on_done(child->data, &result);
}

/* Finishes what has ended or said too much; true when it did. The end is looked for first: all that the process wrote
 * before it is then in the pipes, and is read. */
static bool settle(struct child *child)
{
	siginfo_t info;
	bool ended = reap(child, &info);
	read_stream(child, &child->output);
	read_stream(child, &child->errors);
	if (child->output.overflown) {
		if (!ended)
			kill_group(child);
		finish(child, CHILD_TOO_LARGE, 0);
	} else if (ended) {
		finish(child, info.si_code == CLD_EXITED ? CHILD_EXITED : CHILD_SIGNALED, info.si_status);
	}
	return ended || child->output.overflown;
}

static void look(void *data)
{
	settle(data);
}

/* An end that came in time counts, also where this process slept through both. */
static void on_deadline(void *data)
{
	struct child *child = data;
	if (settle(child))
		return;
	kill_group(child);
	finish(child, CHILD_TIMEOUT, 0);
}

/* ends[1] is the child's. Neither is one of 0, 1, 2, which may be free in this process: the child's would overwrite
 * each other. */
static int open_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	for (int i = 0; i < 2; i++) {
		if (ends[i] >= FIRST_FREE)
			continue;
		int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, FIRST_FREE);
		int cause = errno;
		close(ends[i]);
		ends[i] = moved;
		errno = cause;
	}
	if (ends[0] < 0 || ends[1] < 0)
		return -1;
	return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static void close_pipe(int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* libcurl's own descriptors are not close-on-exec, so the child closes what it was not given. */
static void set_descriptors(posix_spawn_file_actions_t *actions, int output, int errors)
{
	posix_spawn_file_actions_init(actions);
	posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(actions, errors, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FREE);
}

static void set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(attributes);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setsigmask(attributes, &none);
	posix_spawnattr_setpgroup(attributes, 0);
}

/* posix_spawn takes what it does not write to for writable. */
static int spawn(const struct child_options *options, int output, int errors, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	set_descriptors(&actions, output, errors);
	set_attributes(&attributes);
	errno = posix_spawnp(pid, options->argv[0], &actions, &attributes, (char *const *)options->argv,
			     (char *const *)options->environment);
	int result = errno ? -1 : 0, cause = errno;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	errno = cause;
	return result;
}

static void init_stream(struct child *child, struct stream *stream, int fd, size_t limit, size_t keep)
{
	stream->fd = fd;
	stream->keep = keep;
	buf_init(&stream->bytes, limit);
	watch(child, &stream->watcher, fd);
}

static struct child *child_new(struct loop *loop, const struct child_options *options, pid_t pid, int pidfd, int output,
			       int errors)
{
	struct child *child = alloc_object(&child_type, sizeof(*child));
	child->loop = loop;
	child->pid = pid;
	child->pidfd = pidfd;
	loop_job_init(&child->job, look, child);
	loop_timer_init(&child->deadline, on_deadline, child);
	loop_timer_start(loop, &child->deadline, options->timeout);
	init_stream(child, &child->output, output, options->output_limit, 0);
	buf_reserve(&child->output.bytes, options->output_limit); /* one that grows leaves copies of secrets behind */
	init_stream(child, &child->errors, errors, 0, options->errors_limit);
	watch(child, &child->ended, pidfd);
	return child;
}

/* A process that can't be watched is ended again. */
static int open_pidfd(pid_t pid)
{
	int fd = pidfd_open(pid, 0), cause = errno;
	if (fd >= 0)
		return fd;
	kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	errno = cause;
	return -1;
}

struct child *child_start(struct loop *loop, const struct child_options *options, child_fn on_done, void *data,
			  struct err *err)
{
	int output[2] = {-1, -1}, errors[2] = {-1, -1}, pidfd = -1;
	pid_t pid;
	if (!open_pipe(output) && !open_pipe(errors) && !spawn(options, output[1], errors[1], &pid))
		pidfd = open_pidfd(pid);
	if (pidfd < 0) {
		int cause = errno;
		close_pipe(output);
		close_pipe(errors);
		err_set(err, "", "cannot run %s: %s", options->argv[0], strerror(cause));
		errno = cause;
		return NULL;
	}
	close(output[1]);
	close(errors[1]);
	struct child *child = child_new(loop, options, pid, pidfd, output[0], errors[0]);
	child->on_done = on_done;
	child->data = data;
	return child;
}

void child_cancel(struct child *child)
{
	kill_group(child);
	leave(child);
}
