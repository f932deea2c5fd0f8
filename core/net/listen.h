/* listen: a TCP socket that takes connections. An address as a person writes it in; a descriptor out. */
#ifndef PERILUNE_NET_LISTEN_H
#define PERILUNE_NET_LISTEN_H

#include "base/err.h"

/* address: "127.0.0.1:8080", ":8080" (all addresses), "[::1]:0" (any free port). The descriptor is the caller's, does
 * not block and is closed on exec. -1 with err, which begins with "--listen ADDRESS". */
int listen_open(const char *address, struct err *err);
int listen_port(int fd);

#endif
