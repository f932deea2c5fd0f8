/* stand_ins: C library functions that the driver's own definitions hide from libcurl and OpenSSL, so that a spec can
 * make a look-up hang and can name the system's authorities, without touching the system.
 *
 * - getaddrinfo blocks for ever for a name that ends in ".hang"; one that ends in ".loopback" is 127.0.0.1.
 * - a path below /etc/ssl/certs is looked for below $DRIVER_SYSTEM_CERTS, when that is set. */
#ifndef PERILUNE_SPEC_STAND_INS_H
#define PERILUNE_SPEC_STAND_INS_H

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), ending_length = strlen(ending);
	return length >= ending_length && strcmp(name + length - ending_length, ending) == 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
		struct addrinfo **restrict result)
{
	while (name && ends_in(name, ".hang"))
		pause();
	if (name && ends_in(name, ".loopback"))
		name = "127.0.0.1";
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	*(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
	return next(name, service, hints, result);
}

static const char *stand_in_path(const char *path, char *room, size_t size)
{
	static const char system_certs[] = "/etc/ssl/certs";
	const char *instead = getenv("DRIVER_SYSTEM_CERTS");
	if (!instead || strncmp(path, system_certs, strlen(system_certs)) != 0)
		return path;
	snprintf(room, size, "%s%s", instead, path + strlen(system_certs));
	return room;
}

static FILE *stand_in_open(const char *symbol, const char *path, const char *mode)
{
	char room[4096];
	FILE *(*next)(const char *, const char *);
	*(void **)&next = dlsym(RTLD_NEXT, symbol);
	return next(stand_in_path(path, room, sizeof(room)), mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
	return stand_in_open("fopen", path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	return stand_in_open("fopen64", path, mode);
}

static int stand_in_stat(const char *symbol, const char *path, struct stat *result)
{
	char room[4096];
	int (*next)(const char *, struct stat *);
	*(void **)&next = dlsym(RTLD_NEXT, symbol);
	return next(stand_in_path(path, room, sizeof(room)), result);
}

int stat(const char *restrict path, struct stat *restrict result)
{
	return stand_in_stat("stat", path, result);
}

/* Which of the two OpenSSL uses depends on its version. */
int lstat(const char *restrict path, struct stat *restrict result)
{
	return stand_in_stat("lstat", path, result);
}

#endif
