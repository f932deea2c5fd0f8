#include "script/files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

ALLOC_TYPE(file_type, "script file");

struct file {
	struct list node;
	char *path;
	struct stat found; /* st_nlink 0: it was not there */
};

void files_init(struct files *files)
{
	list_init(&files->list);
}

void files_fini(struct files *files)
{
	for (struct list *node; (node = list_pop(&files->list));) {
		struct file *file = LIST_ENTRY(node, struct file, node);
		alloc_free(file->path);
		alloc_object_free(&file_type, file);
	}
}

static void look(const char *path, struct stat *found)
{
	if (stat(path, found) < 0)
		memset(found, 0, sizeof(*found));
}

void files_note(struct files *files, const char *path)
{
	LIST_EACH (&files->list, node)
		if (!strcmp(LIST_ENTRY(node, struct file, node)->path, path))
			return;
	struct file *file = alloc_object(&file_type, sizeof(*file));
	file->path = alloc_string(path);
	look(path, &file->found);
	list_add_tail(&files->list, &file->node);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool files_have_changed(const struct files *files)
{
	LIST_EACH (&files->list, node) {
		const struct file *file = LIST_ENTRY(node, struct file, node);
		struct stat now;
		look(file->path, &now);
		if (!is_same(&now, &file->found))
			return true;
	}
	return false;
}
