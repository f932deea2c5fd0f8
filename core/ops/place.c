#include "ops/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/socket_file.h"

static const char suffix[] = ".sock";

enum { RUNTIME, TEMPORARY, PLACES };

static const char *parent_of(int place)
{
	const char *parent = getenv(place == RUNTIME ? "XDG_RUNTIME_DIR" : "TMPDIR");
	if (parent && *parent == '/')
		return parent;
	return place == RUNTIME ? NULL : "/tmp";
}

/* NULL where there is no such place; the caller's. */
static char *folder_of(int place)
{
	const char *parent = parent_of(place);
	if (!parent)
		return NULL;
	return place == RUNTIME ? alloc_format("%s/perilune", parent)
				: alloc_format("%s/perilune-%u", parent, (unsigned)geteuid());
}

/* Nobody but its owner and root can replace what is in it. */
static bool is_safe_parent(const char *path)
{
	struct stat found;
	if (stat(path, &found) || !S_ISDIR(found.st_mode))
		return false;
	return (found.st_uid == geteuid() || found.st_uid == 0) &&
	       (!(found.st_mode & (S_IWGRP | S_IWOTH)) || (found.st_mode & S_ISVTX));
}

static bool is_safe_folder(const char *path)
{
	struct stat found;
	return !lstat(path, &found) && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
	       !(found.st_mode & (S_IRWXG | S_IRWXO));
}

static int make_folder(int place, const char *folder, struct err *err)
{
	if (strlen(folder) + sizeof("/4194304.sock") > SOCKET_FILE_SIZE)
		return err_set(err, "", "%s is too long for a socket in it", folder);
	if (!is_safe_parent(parent_of(place)))
		return err_set(err, "", "%s is not there, or others could replace what is in it", parent_of(place));
	if (mkdir(folder, S_IRWXU) && errno != EEXIST)
		return err_set(err, "", "%s: %s", folder, strerror(errno));
	if (!is_safe_folder(folder))
		return err_set(err, "", "%s is no folder that this user alone can enter", folder);
	return 0;
}

static int is_socket_name(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return length >= sizeof(suffix) && !strcmp(entry->d_name + length - sizeof(suffix) + 1, suffix);
}

static void each_entry(const char *folder, void (*fn)(void *data, const char *path), void *data)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_socket_name, alphasort);
	if (count < 0)
		return;
	for (int i = 0; i < count; i++) {
		char *path = alloc_format("%s/%s", folder, entries[i]->d_name);
		fn(data, path);
		alloc_free(path);
		free(entries[i]);
	}
	free(entries);
}

/* One that has been bound and is not listened on yet looks dead; but then its process lives. */
static void remove_dead(void *data, const char *path)
{
	(void)data;
	int pid = atoi(strrchr(path, '/') + 1);
	if (pid > 0 && pid != getpid() && kill(pid, 0) && errno == ESRCH && socket_file_is_dead(path))
		unlink(path);
}

int place_make(struct buf *out, struct err *err)
{
	for (int place = 0; place < PLACES; place++) {
		char *folder = folder_of(place);
		bool usable = folder && !make_folder(place, folder, err);
		if (usable) {
			each_entry(folder, remove_dead, NULL);
			buf_append_format(out, "%s/%d%s", folder, getpid(), suffix);
		}
		alloc_free(folder);
		if (usable)
			return 0;
	}
	return -1;
}

struct visit {
	void (*fn)(void *data, const char *path);
	void *data;
};

static void visit_live(void *data, const char *path)
{
	const struct visit *visit = data;
	int fd = socket_file_connect(path);
	bool listens = fd >= 0 || errno == EAGAIN;
	if (fd >= 0)
		close(fd);
	if (listens)
		visit->fn(visit->data, path);
}

void place_each(void (*fn)(void *data, const char *path), void *data)
{
	struct visit visit = {fn, data};
	for (int place = 0; place < PLACES; place++) {
		char *folder = folder_of(place);
		if (folder && is_safe_parent(parent_of(place)) && is_safe_folder(folder))
			each_entry(folder, visit_live, &visit);
		alloc_free(folder);
	}
}

void place_describe(struct buf *out)
{
	for (int place = 0; place < PLACES; place++) {
		char *folder = folder_of(place);
		if (folder)
			buf_append_format(out, "%s%s", out->length ? " and " : "", folder);
		alloc_free(folder);
	}
}
