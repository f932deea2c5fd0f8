/* inotify watches folders, by their inode. So the folders that matter are looked up again after changes that may have
 * put another one in their place. That is done once a burst, just before it is told: then whoever is told sees what
 * happened before, and the watches what happens after. */
#include "net/watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ev.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/loop_ev.h"

ALLOC_TYPE(watch_type, "watch");

#define READS_AT_ONCE 16

#define ON_THE_WAY                                                                                                     \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define IN_FOLDER (ON_THE_WAY | IN_CLOSE_WRITE)
#define ONLY_CONTENT (IN_CLOSE_WRITE | IN_ISDIR)

/* A folder, and what counts in it. */
struct row {
	int wd;
	char *name; /* of the next one on the way to a path; NULL: all count */
};

struct rows {
	struct row *items;
	size_t count;
};

struct watch {
	struct loop *loop;
	const char *ending;
	loop_fn on_change;
	void *data;
	int fd;
	ev_io watcher;
	struct loop_job job;
	struct loop_timer timer;
	double since; /* the first change that has not been told yet; 0: there is none */
	char **paths; /* absolute */
	size_t path_count;
	struct rows rows;
	bool moved; /* the rows may be out of date */
	bool full;  /* the system's limit was reached, and told */
};

/* --- rows --- */

static void add_row(struct rows *rows, int wd, const char *name)
{
	rows->items = alloc_resize(rows->items, (rows->count + 1) * sizeof(*rows->items));
	rows->items[rows->count++] = (struct row){wd, alloc_string(name)};
}

static void fini_rows(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		alloc_free(rows->items[i].name);
	alloc_free(rows->items);
}

static bool has_wd(const struct rows *rows, int wd)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].wd == wd)
			return true;
	return false;
}

static bool has_whole(const struct rows *rows, int wd)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].wd == wd && !rows->items[i].name)
			return true;
	return false;
}

/* --- which folders there are --- */

/* One that is watched for more already stays so. -1 when there is no such folder, or none may look into it. */
static int watch_folder(struct watch *watch, const char *folder, uint32_t mask)
{
	int wd = inotify_add_watch(watch->fd, folder, mask | IN_MASK_ADD);
	if (wd < 0 && (errno == ENOSPC || errno == ENOMEM) && !watch->full) {
		watch->full = true;
		log_warn(LOG_FIELDS({"path", folder}),
			 "changes of files may go unnoticed: the system watches no more folders (raise "
			 "fs.inotify.max_user_watches)");
	}
	return wd;
}

static bool is_dots(const char *name)
{
	return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

/* Each name of an absolute path, in its folder, as far as they are there. */
static void add_way(struct watch *watch, struct rows *rows, const char *path)
{
	char *folder = alloc_string(path);
	const char *name = path;
	for (int wd = 0; *name && wd >= 0;) {
		name += strspn(name, "/");
		size_t length = strcspn(name, "/");
		char *word = alloc_text(name, length);
		memcpy(folder, path, (size_t)(name - path));
		folder[name - path] = '\0';
		if (!is_dots(word) && (wd = watch_folder(watch, folder, ON_THE_WAY)) >= 0)
			add_row(rows, wd, word);
		alloc_free(word);
		name += length;
	}
	alloc_free(folder);
}

struct folders { /* found and not yet looked into, and those that were */
	char **items;
	size_t count, done;
};

static void add_folder(struct folders *folders, char *path)
{
	folders->items = alloc_resize(folders->items, (folders->count + 1) * sizeof(*folders->items));
	folders->items[folders->count++] = path;
}

static mode_t type_of(const char *path) /* 0: it is not there */
{
	struct stat found;
	return stat(path, &found) ? 0 : found.st_mode & S_IFMT;
}

static void find_folders(struct folders *folders, const char *parent)
{
	DIR *stream = opendir(parent);
	struct dirent *entry;
	while (stream && folders->count < WATCH_FOLDERS && (entry = readdir(stream))) {
		bool may_be = entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
		if (!may_be || entry->d_name[0] == '.')
			continue;
		char *path = alloc_format("%s/%s", parent, entry->d_name);
		if (entry->d_type == DT_DIR || type_of(path) == S_IFDIR)
			add_folder(folders, path);
		else
			alloc_free(path);
	}
	if (stream)
		closedir(stream);
}

/* The folder is watched before it is looked into, so that what comes meanwhile is not missed. Links may lead to where
 * it has been already. */
static void add_tree(struct watch *watch, struct rows *rows, const char *folder)
{
	struct folders folders = {0};
	add_folder(&folders, alloc_string(folder));
	while (folders.done < folders.count) {
		const char *next = folders.items[folders.done++];
		int wd = watch_folder(watch, next, IN_FOLDER);
		if (wd < 0 || has_whole(rows, wd))
			continue;
		add_row(rows, wd, NULL);
		find_folders(&folders, next);
	}
	for (size_t i = 0; i < folders.count; i++)
		alloc_free(folders.items[i]);
	alloc_free(folders.items);
}

static void add_own_folder(struct watch *watch, struct rows *rows, const char *path)
{
	mode_t type = type_of(path);
	size_t length = (size_t)(strrchr(path, '/') - path);
	char *folder = type == S_IFDIR ? alloc_string(path) : alloc_text(path, length ? length : 1);
	if (type)
		add_tree(watch, rows, folder);
	alloc_free(folder);
}

static void add_path(struct watch *watch, struct rows *rows, const char *path)
{
	char real[PATH_MAX];
	add_way(watch, rows, path);
	add_own_folder(watch, rows, path);
	if (!realpath(path, real) || !strcmp(real, path))
		return;
	add_way(watch, rows, real);
	add_own_folder(watch, rows, real);
}

static void look_up(struct watch *watch)
{
	struct rows before = watch->rows, rows = {0};
	for (size_t i = 0; i < watch->path_count; i++)
		add_path(watch, &rows, watch->paths[i]);
	for (size_t i = 0; i < before.count; i++)
		if (!has_wd(&rows, before.items[i].wd))
			inotify_rm_watch(watch->fd, before.items[i].wd);
	fini_rows(&before);
	watch->rows = rows;
	watch->moved = false;
}

/* --- events --- */

static bool ends_in(const char *name, const char *ending)
{
	size_t length = strlen(name), ending_length = strlen(ending);
	return length >= ending_length && !strcmp(name + length - ending_length, ending);
}

/* A folder that Lua code is required from has no dot in its name; of a link to one the system does not say what it is.
 */
static bool name_counts(const struct watch *watch, const char *name, uint32_t mask)
{
	if (name[0] == '.')
		return name[1] == '.';
	return (mask & IN_ISDIR) || ends_in(name, watch->ending) || (!strchr(name, '.') && (mask & ~IN_CLOSE_WRITE));
}

static bool row_counts(const struct watch *watch, const struct row *row, const struct inotify_event *event)
{
	if (row->wd != event->wd)
		return false;
	if (!event->len) /* the folder itself */
		return true;
	return row->name ? !strcmp(row->name, event->name) : name_counts(watch, event->name, event->mask);
}

/* Of a folder that is watched no more, events may still come. */
static bool counts(const struct watch *watch, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	for (size_t i = 0; i < watch->rows.count; i++)
		if (row_counts(watch, &watch->rows.items[i], event))
			return true;
	return false;
}

/* The masks of those that count, all in one. */
static uint32_t judge(const struct watch *watch, const char *bytes, size_t length)
{
	uint32_t seen = 0;
	for (const char *at = bytes; at < bytes + length;) {
		const struct inotify_event *event = (const void *)at;
		if (counts(watch, event))
			seen |= event->mask;
		at += sizeof(*event) + event->len;
	}
	return seen;
}

static void wait_for_quiet(struct watch *watch)
{
	double now = clock_now();
	if (watch->since <= 0)
		watch->since = now;
	loop_timer_start(watch->loop, &watch->timer, fmin(WATCH_QUIET, watch->since + WATCH_LONGEST - now));
}

static void read_events(void *data)
{
	_Alignas(struct inotify_event) char bytes[16384];
	struct watch *watch = data;
	uint32_t seen = 0;
	ssize_t got = 1;
	for (int i = 0; i < READS_AT_ONCE && got > 0; i++) {
		got = read(watch->fd, bytes, sizeof(bytes));
		if (got > 0)
			seen |= judge(watch, bytes, (size_t)got);
	}
	watch->moved = watch->moved || (seen & ~(uint32_t)ONLY_CONTENT);
	if (seen)
		wait_for_quiet(watch);
}

static void on_timer(void *data)
{
	struct watch *watch = data;
	watch->since = 0;
	if (watch->moved)
		look_up(watch);
	watch->on_change(watch->data);
}

static void on_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev, (void)events;
	struct watch *watch = watcher->data;
	loop_post(watch->loop, &watch->job);
}

/* --- making and freeing --- */

struct watch *watch_new(struct loop *loop, const char *ending, loop_fn on_change, void *data, struct err *err)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0) {
		err_set(err, "", "files can't be watched: %s%s", strerror(errno),
			errno == EMFILE ? " (raise fs.inotify.max_user_instances)" : "");
		return NULL;
	}
	struct watch *watch = alloc_object(&watch_type, sizeof(*watch));
	watch->loop = loop;
	watch->ending = ending;
	watch->on_change = on_change;
	watch->data = data;
	watch->fd = fd;
	loop_job_init(&watch->job, read_events, watch);
	loop_timer_init(&watch->timer, on_timer, watch);
	ev_io_init(&watch->watcher, on_ready, fd, EV_READ);
	watch->watcher.data = watch;
	ev_io_start(loop_ev(loop), &watch->watcher);
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	ev_io_stop(loop_ev(watch->loop), &watch->watcher);
	loop_job_cancel(&watch->job);
	loop_timer_stop(watch->loop, &watch->timer);
	close(watch->fd);
	fini_rows(&watch->rows);
	for (size_t i = 0; i < watch->path_count; i++)
		alloc_free(watch->paths[i]);
	alloc_free(watch->paths);
	alloc_object_free(&watch_type, watch);
}

static char *absolute(const char *path)
{
	char folder[PATH_MAX];
	if (*path == '/')
		return alloc_string(path);
	return alloc_format("%s/%s", getcwd(folder, sizeof(folder)) ? folder : "", path);
}

void watch_add(struct watch *watch, const char *path)
{
	watch->paths = alloc_resize(watch->paths, (watch->path_count + 1) * sizeof(*watch->paths));
	watch->paths[watch->path_count++] = absolute(path);
	look_up(watch);
}
