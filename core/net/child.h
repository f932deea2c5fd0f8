/* child: one run of another program, its output collected, from child_start() to on_done.
 *
 * The program gets default signals, an empty signal mask, /dev/null as stdin, a process group of its own and no
 * descriptor beside 0, 1 and 2. It is over when the process that was started has ended; what it left running in the
 * background is not waited for. One that takes too long or says too much is killed with its whole group. The child is
 * reaped before on_done, and before child_cancel returns. */
#ifndef PERILUNE_NET_CHILD_H
#define PERILUNE_NET_CHILD_H

#include "base/buf.h"
#include "net/loop.h"

/* All of it is borrowed for the call of child_start only. */
struct child_options {
	const char *const *argv;        /* ended by NULL; the first is a path, or is looked for in PATH */
	const char *const *environment; /* "NAME=value", ended by NULL; the whole of it */
	size_t output_limit;            /* most bytes of stdout */
	size_t errors_limit;            /* so many bytes of the end of stderr are kept; not 0 */
	double timeout;                 /* seconds */
};

enum child_end {
	CHILD_EXITED,   /* code is its exit code */
	CHILD_SIGNALED, /* code is the signal */
	CHILD_TIMEOUT,
	CHILD_TOO_LARGE /* more than output_limit */
};

/* Borrowed for the call of on_done. */
struct child_result {
	enum child_end end;
	int code;
	const struct buf *output; /* stdout; wiped afterwards */
	const struct buf *errors; /* the end of stderr */
};

struct child;
typedef void (*child_fn)(void *data, const struct child_result *result);

/* NULL when it could not be started, with the cause in err and errno; ENOENT where there is no such program. on_done is
 * called once, from the loop, unless child_cancel was; the child is dead after either. */
struct child *child_start(struct loop *loop, const struct child_options *options, child_fn on_done, void *data,
			  struct err *err);
void child_cancel(struct child *child); /* kills the group */

#endif
