#include "net/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WAITING_CLIENTS 128
#define LOCK_TRIES 100 /* of LOCK_PAUSE each; who holds it is done at once, unless he means harm */
#define LOCK_PAUSE 10  /* milliseconds */

static int fill_address(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address->sun_path, path);
	return 0;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void close_quietly(int fd)
{
	int cause = errno;
	close(fd);
	errno = cause;
}

int socket_file_connect(const char *path)
{
	struct sockaddr_un address;
	int fd = fill_address(&address, path) ? -1 : open_socket();
	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close_quietly(fd);
	return -1;
}

/* What is no socket refuses connections too. */
bool socket_file_is_dead(const char *path)
{
	struct stat found;
	if (lstat(path, &found) || !S_ISSOCK(found.st_mode))
		return false;
	int fd = socket_file_connect(path);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == ECONNREFUSED;
}

/* The folder of the path, locked; -1 with errno. */
static int lock_folder(const char *path)
{
	char folder[SOCKET_FILE_SIZE];
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		poll(NULL, 0, LOCK_PAUSE);
	}
	close_quietly(fd);
	return -1;
}

/* On Linux the file that bind makes takes the socket's mode. */
static int bind_socket(const char *path)
{
	struct sockaddr_un address;
	int fd = fill_address(&address, path) ? -1 : open_socket();
	if (fd < 0)
		return -1;
	if (!fchmod(fd, S_IRUSR | S_IWUSR) && !bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !listen(fd, WAITING_CLIENTS))
		return fd;
	close_quietly(fd);
	return -1;
}

static int bind_or_replace(const char *path)
{
	int fd = bind_socket(path);
	if (fd >= 0 || errno != EADDRINUSE || !socket_file_is_dead(path))
		return fd;
	return unlink(path) ? -1 : bind_socket(path);
}

static const char *reason(const char *path, int cause)
{
	struct stat found;
	if (cause == EADDRINUSE || cause == ECONNREFUSED)
		return !lstat(path, &found) && !S_ISSOCK(found.st_mode) ? "there is a file that is no socket"
									: "another process listens there";
	return cause == ENAMETOOLONG ? "the path of a socket has at most 107 bytes" : strerror(cause);
}

int socket_file_listen(struct socket_file *file, const char *path, struct err *err)
{
	struct stat made = {0};
	int fd = -1, lock = strlen(path) < SOCKET_FILE_SIZE ? lock_folder(path) : (errno = ENAMETOOLONG, -1);
	if (lock >= 0) {
		fd = bind_or_replace(path);
		int cause = errno;
		if (fd >= 0 && lstat(path, &made))
			made = (struct stat){0};
		close(lock);
		errno = cause;
	}
	if (fd < 0)
		return err_set(err, "", "%s: %s", path, reason(path, errno));
	strcpy(file->path, path);
	file->device = made.st_dev;
	file->inode = made.st_ino;
	return fd;
}

void socket_file_remove(const struct socket_file *file)
{
	struct stat found;
	if (!lstat(file->path, &found) && found.st_dev == file->device && found.st_ino == file->inode)
		unlink(file->path);
}
