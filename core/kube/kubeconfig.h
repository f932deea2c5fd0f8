/* kubeconfig: the files of a kubeconfig list, read and checked; what they say about a context, cluster or user.
 *
 * As kubectl merges them: of entries with the same name, and of current-context, the first file's counts, whole; a file
 * that is not there is skipped. */
#ifndef PERILUNE_KUBE_KUBECONFIG_H
#define PERILUNE_KUBE_KUBECONFIG_H

#include "json/scan.h"

struct kubeconfig_file {
	char *path;
	char *json; /* holds secrets */
	struct json_slice root;
};

struct kubeconfig {
	struct kubeconfig_file *files;
	size_t count; /* 0 when none of the list is there */
	char *source; /* their paths, joined by colons */
};

/* paths: as in $KUBECONFIG. 0, or -1 with err. kubeconfig_fini is due in either case. */
int kubeconfig_read(struct kubeconfig *kubeconfig, const char *paths, struct err *err);
void kubeconfig_fini(struct kubeconfig *kubeconfig);

/* The current-context, owned by the caller; NULL when none is named. */
char *kubeconfig_current(const struct kubeconfig *kubeconfig);

/* One entry; borrowed from the kubeconfig. kind is "context", "cluster" or "user". */
struct kubeconfig_entry {
	const struct kubeconfig_file *file;
	const char *kind, *name;
	struct json_slice value; /* .data NULL where the entry is empty */
};

bool kubeconfig_find(const struct kubeconfig *kubeconfig, const char *kind, const char *name,
		     struct kubeconfig_entry *entry);
void kubeconfig_names(const struct kubeconfig *kubeconfig, const char *kind, struct buf *out); /* "a, b, c" */

/* Members of an entry: owned by the caller, NULL when absent or empty. 0, or -1 with err when of another type. */
int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
/* A path, resolved against its file. */
int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
/* The base64 of a text, decoded. */
int kubeconfig_data(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
int kubeconfig_flag(const struct kubeconfig_entry *entry, const char *key, bool *out, struct err *err);

#endif
