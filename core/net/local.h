/* local: a server on a unix socket, for programs of the same user. A line comes in, one answer goes out, and the
 * connection ends.
 *
 * An answer is a line, "ok LENGTH" or "refused LENGTH", and so many bytes; so net/ask.h knows a whole one from one that
 * was cut. Who is neither this process's user nor root is not listened to. A client that does not send its line, or
 * takes nothing of its answer, within LOCAL_PATIENCE is dropped; the owner may think for as long as it likes. */
#ifndef PERILUNE_NET_LOCAL_H
#define PERILUNE_NET_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

#include "net/loop.h"

#define LOCAL_PATIENCE 5.0 /* seconds */
#define LOCAL_LINE 1024    /* bytes of a request, its newline included */
#define LOCAL_CLIENTS 64   /* at once; more wait in the kernel */

struct local;
struct local_call;

struct local_options {
	const char *path; /* as for socket_file_listen */
	/* From the loop's drain. The call is to be answered, now or later; line is borrowed for on_request only. */
	void (*on_request)(void *data, struct local_call *call, const char *line);
	void *data;
};

struct local *local_new(struct loop *loop, const struct local_options *options, struct err *err); /* NULL with err */
void local_free(struct local *local); /* ends all connections, and their calls with them; NULL is harmless */

/* Once a call, which is dead after it. The bytes are copied. Harmless when the client has gone. */
void local_answer(struct local_call *call, bool ok, const char *bytes, size_t length);

#endif
