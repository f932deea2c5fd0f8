#include "script/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"

struct search {
	load_fn fn;
	void *data;
};

/* The last part of path without ".lua" and slashes at the end; owned by the caller. */
static char *base_name(const char *path)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	size_t start = length;
	while (start > 0 && path[start - 1] != '/')
		start--;
	if (length - start > 4 && strncmp(path + length - 4, ".lua", 4) == 0)
		length -= 4;
	return alloc_text(path + start, length - start);
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? alloc_text(path, slash == path ? 1 : (size_t)(slash - path)) : alloc_string(".");
}

/* `*_spec.lua` and `_*.lua` in a folder are not scripts; a mounted ConfigMap's "..data" isn't either. */
static int is_script(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	if (entry->d_name[0] == '_' || entry->d_name[0] == '.' || length < 5 ||
	    strcmp(entry->d_name + length - 4, ".lua") != 0)
		return 0;
	return length < 10 || strcmp(entry->d_name + length - 9, "_spec.lua") != 0;
}

static int find_entries(const struct search *search, const char *folder, struct dirent **entries, int count,
			struct err *err)
{
	int result = 0;
	for (int i = 0; i < count && result == 0; i++) {
		char *path = alloc_format("%s/%s", folder, entries[i]->d_name);
		char *name = base_name(path);
		result = search->fn(search->data, name, path, folder, err);
		alloc_free(name);
		alloc_free(path);
	}
	return result;
}

/* Of a folder that is one script: the path of its init.lua, owned. NULL for any other. */
static char *find_init(const char *folder)
{
	struct stat found;
	char *init = alloc_format("%s/init.lua", folder);
	if (stat(init, &found) == 0)
		return init;
	alloc_free(init);
	return NULL;
}

/* ", but in its folders a, b" where folders in it are scripts; hidden ones are not looked at. */
static void name_inner(const char *folder, struct buf *out)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char *inner = alloc_format("%s/%s", folder, entries[i]->d_name), *init = find_init(inner);
		if (entries[i]->d_name[0] != '.' && init)
			buf_append_format(out, "%s%s", out->length ? ", " : ", but in its folders ",
					  entries[i]->d_name);
		alloc_free(init);
		alloc_free(inner);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static int fail_empty(const char *folder, struct err *err)
{
	struct buf inner;
	buf_init(&inner, 0);
	name_inner(folder, &inner);
	err_set(err, "Usage", "%s: no init.lua and no other .lua file in it%s", folder, buf_text(&inner));
	buf_fini(&inner);
	return -1;
}

static int find_in_folder(const struct search *search, const char *folder, struct err *err)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_script, alphasort);
	if (count < 0)
		return err_set(err, "Usage", "cannot read %s: %s", folder, strerror(errno));
	int result = count == 0 ? fail_empty(folder, err) : find_entries(search, folder, entries, count, err);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	return result;
}

static bool is_manifest(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

static int find_at(const struct search *search, const char *path, bool folder, struct err *err)
{
	if (!folder && is_manifest(path))
		return err_set(err, "Usage", "%s: this is no script: --manifests takes YAML", path);
	if (!folder) {
		char *name = base_name(path), *parent = folder_of(path);
		int result = search->fn(search->data, name, path, parent, err);
		alloc_free(parent);
		alloc_free(name);
		return result;
	}
	int result;
	char *init = find_init(path);
	if (init) {
		char *whole = realpath(path, NULL); /* "." has a name too */
		char *name = base_name(whole ? whole : path);
		result = search->fn(search->data, name, init, path, err);
		alloc_free(name);
		free(whole);
		alloc_free(init);
	} else {
		result = find_in_folder(search, path, err);
	}
	return result;
}

int load_find(const char *path, load_fn fn, void *data, struct err *err)
{
	struct search search = {fn, data};
	struct stat found;
	if (stat(path, &found) < 0)
		return err_set(err, "Usage", "%s: %s", path, strerror(errno));
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	char *trimmed = alloc_text(path, length);
	int result = find_at(&search, trimmed, S_ISDIR(found.st_mode), err);
	alloc_free(trimmed);
	return result;
}
