/* socket_file: the file of a unix socket, on which one process listens and to which others connect.
 *
 * Only its user can connect: its mode is 0600 from its first moment. What a dead process left is replaced, the socket
 * of a live one is not, nor is any other file. Of two processes that want the same path at once one gets it: both lock
 * its folder meanwhile. */
#ifndef PERILUNE_NET_SOCKET_FILE_H
#define PERILUNE_NET_SOCKET_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define SOCKET_FILE_SIZE 108 /* of a path with its NUL; the kernel takes no longer one */

struct socket_file {
	char path[SOCKET_FILE_SIZE];
	dev_t device;
	ino_t inode;
};

/* A descriptor that listens, does not block and is closed on exec; the caller's. -1 with err, which begins with the
 * path. */
int socket_file_listen(struct socket_file *file, const char *path, struct err *err);
void socket_file_remove(const struct socket_file *file); /* unless another one stands there by now */

/* A descriptor as above, connected. -1 with errno: ECONNREFUSED where nobody listens, EAGAIN where too many wait. */
int socket_file_connect(const char *path);
bool socket_file_is_dead(const char *path); /* there is a socket, and nobody listens */

#endif
