#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* host and port point into room. */
static int split_address(const char *address, char *room, size_t size, const char **host, const char **port)
{
	char *colon, *bracket;
	if (strlen(address) >= size)
		return -1;
	strcpy(room, address);
	if (!(colon = strrchr(room, ':')) || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    atol(colon + 1) > 65535)
		return -1;
	*colon = '\0';
	*port = colon + 1;
	*host = room;
	if (*room == '[') {
		if (!(bracket = strchr(room, ']')) || bracket[1])
			return -1;
		*bracket = '\0';
		*host = room + 1;
	} else if (strchr(room, ':')) {
		return -1;
	}
	return 0;
}

static int open_socket(const struct addrinfo *where)
{
	int fd = socket(where->ai_family, where->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where->ai_protocol),
	    on = 1, off = 0;
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (where->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

/* The first that works. For ":8080" that is the IPv6 one where the system has IPv6, and it takes IPv4 too. */
static int open_first(const struct addrinfo *list, int family)
{
	int fd = -1;
	for (const struct addrinfo *where = list; where && fd < 0; where = where->ai_next)
		if (family == AF_UNSPEC || where->ai_family == family)
			fd = open_socket(where);
	return fd;
}

static const char *advice(int failure)
{
	switch (failure) {
	case EADDRINUSE:
		return "address already in use";
	case EACCES:
		return "not permitted; ports below 1024 need a privilege";
	case EADDRNOTAVAIL:
		return "not an address of this machine";
	default:
		return strerror(failure);
	}
}

int listen_open(const char *address, struct err *err)
{
	char room[300];
	const char *host, *port;
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list;
	if (split_address(address, room, sizeof(room), &host, &port))
		return err_set(err, "", "--listen %s: not ADDR:PORT (such as 127.0.0.1:8080, :8080 or [::1]:8080)",
			       address);
	int code = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	if (code)
		return err_set(err, "", "--listen %s: %s; choose another with --listen ADDR:PORT or off", address,
			       gai_strerror(code));
	int fd = *host ? -1 : open_first(list, AF_INET6);
	if (fd < 0)
		fd = open_first(list, AF_UNSPEC);
	int failure = errno;
	freeaddrinfo(list);
	if (fd < 0)
		return err_set(err, "", "--listen %s: %s; choose another with --listen ADDR:PORT or off", address,
			       advice(failure));
	return fd;
}

int listen_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	getsockname(fd, (struct sockaddr *)&address, &length);
	return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
						   : ((struct sockaddr_in *)&address)->sin_port);
}
