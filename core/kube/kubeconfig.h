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
	const char *part;        /* the member that value is, of a kubeconfig_part; NULL: all of the entry */
};

bool kubeconfig_find(const struct kubeconfig *kubeconfig, const char *kind, const char *name,
		     struct kubeconfig_entry *entry);
void kubeconfig_names(const struct kubeconfig *kubeconfig, const char *kind, struct buf *out); /* "a, b, c" */

/* Members of an entry: owned by the caller, NULL when absent or empty. 0, or -1 with err when of another type. */
int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
/* Texts of a list, ended by NULL, for secret_texts_free; no list is one without texts. */
int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key, char ***out, struct err *err);
/* A path, resolved against its file. */
int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
/* The base64 of a text, decoded. */
int kubeconfig_data(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err);
int kubeconfig_flag(const struct kubeconfig_entry *entry, const char *key, bool *out, struct err *err);
/* An object within the entry, its members read as those of an entry; 1, or 0 when absent. */
int kubeconfig_part(const struct kubeconfig_entry *entry, const char *key, struct kubeconfig_entry *part,
		    struct err *err);
/* Sets err to `FILE: user "NAME": KEY WHY`; -1. */
int kubeconfig_refuse(const struct kubeconfig_entry *entry, const char *key, const char *why, struct err *err);

#endif
