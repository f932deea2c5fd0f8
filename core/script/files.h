/* files: the files that a script was loaded from, its modules included, and whether they are still what they were. */
#ifndef PERILUNE_SCRIPT_FILES_H
#define PERILUNE_SCRIPT_FILES_H

#include <stdbool.h>

#include "base/list.h"

struct files {
	struct list list;
};

void files_init(struct files *files);
void files_fini(struct files *files);

/* Before it is read, so that what changes in between counts as a change. Once for each path. */
void files_note(struct files *files, const char *path);
bool files_have_changed(const struct files *files); /* one is another file, was written to, or is gone */

#endif
