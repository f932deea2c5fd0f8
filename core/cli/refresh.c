#include "cli/refresh.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "net/watch.h"

ALLOC_TYPE(refresh_type, "refresh");

struct refresh {
	struct host *host;
	struct watch *watch;
	bool running; /* a reload, of this one's */
	bool again;   /* something has changed since it began */
};

static void on_reloaded(void *data, const struct host_reload *outcome);

static void reload(struct refresh *refresh)
{
	refresh->running = true;
	refresh->again = false;
	host_reload(refresh->host, false, on_reloaded, refresh);
}

/* The outcome is in the log. */
static void on_reloaded(void *data, const struct host_reload *outcome)
{
	(void)outcome;
	struct refresh *refresh = data;
	refresh->running = false;
	if (refresh->again)
		reload(refresh);
}

static void on_change(void *data)
{
	struct refresh *refresh = data;
	refresh->again = true;
	if (!refresh->running)
		reload(refresh);
}

/* The kubelet swaps the link "..data" in the mounted folder. */
static bool is_mount(const char *path)
{
	struct stat found;
	const char *slash = strrchr(path, '/');
	bool is_folder = !stat(path, &found) && S_ISDIR(found.st_mode);
	char *link = is_folder ? alloc_format("%s/..data", path)
			       : alloc_format("%.*s..data", slash ? (int)(slash - path + 1) : 0, path);
	bool there = !lstat(link, &found) && S_ISLNK(found.st_mode);
	alloc_free(link);
	return there;
}

static bool is_watched(const struct options *options, const char *path)
{
	return options->watch == CHOICE_YES || (options->watch == CHOICE_OPEN && is_mount(path));
}

static struct refresh *make(struct loop *loop, struct host *host, struct err *err)
{
	struct refresh *refresh = alloc_object(&refresh_type, sizeof(*refresh));
	refresh->host = host;
	refresh->watch = watch_new(loop, ".lua", on_change, refresh, err);
	if (refresh->watch)
		return refresh;
	refresh_free(refresh);
	return NULL;
}

int refresh_new(struct loop *loop, struct host *host, const struct options *options, struct refresh **refresh,
		struct err *err)
{
	const struct value_texts *paths = &options->operands;
	*refresh = NULL;
	for (size_t i = 0; i < paths->count; i++) {
		if (!is_watched(options, paths->items[i]))
			continue;
		if (!*refresh && !(*refresh = make(loop, host, err)))
			return options->watch == CHOICE_YES ? -1 : (log_warn(NULL, "%s", err->message), 0);
		watch_add((*refresh)->watch, paths->items[i]);
	}
	return 0;
}

void refresh_free(struct refresh *refresh)
{
	if (!refresh)
		return;
	watch_free(refresh->watch);
	alloc_object_free(&refresh_type, refresh);
}
