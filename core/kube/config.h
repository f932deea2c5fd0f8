/* config: which API server to speak to and who we are, from kubeconfig files or from inside a cluster. Files in; one
 * resolved struct out. */
#ifndef PERILUNE_KUBE_CONFIG_H
#define PERILUNE_KUBE_CONFIG_H

#include <stdbool.h>

#include "base/err.h"

struct plugin;

struct config_options {
	const char *kubeconfig; /* a path list as in $KUBECONFIG; NULL looks at $KUBECONFIG, then the cluster's files,
				   then ~/.kube/config. */
	const char *context;    /* NULL: current-context */
	const char *namespace;  /* NULL: the context's, or "default" */
};

/* All strings owned, NULL where not given. Relative paths are resolved against the file that names them. */
struct config {
	char *source;                     /* for messages: the file(s), or "in-cluster" */
	char *cluster_place, *user_place; /* the same, of the entries: `FILE: user "NAME"` */
	char *context;                    /* NULL in a cluster */
	bool in_cluster;
	char *server;        /* "https://127.0.0.1:6443", no slash at the end */
	char *namespace;     /* what was asked for, else own_namespace */
	char *own_namespace; /* the context's or the pod's, else "default" */
	char *tls_server_name, *proxy_url;
	bool insecure;
	char *ca;         /* PEM text from certificate-authority-data */
	char *ca_file;    /* or its file, re-read when credentials are refreshed */
	char *cert, *key; /* PEM texts */
	char *cert_file, *key_file;
	char *token, *token_file;  /* token_file wins, as in client-go */
	char *username, *password; /* basic */
	struct plugin *plugin;     /* the user's exec plugin; its credential is used where none of the above is given */
	char *exec_extension;      /* JSON: what the cluster's entry holds for exec plugins */
	char **impersonation;      /* header lines, ended by NULL, which act as somebody else */
};

/* NULL with err: no configuration found (err says where it looked), unreadable, malformed (file and what), unknown
 * context (which there are), a cluster or user that a context names and that is not there, a credential kind that is
 * not supported. */
struct config *config_load(const struct config_options *options, struct err *err);
/* Where there is no cluster: a configuration that nothing connects with. */
struct config *config_none(void);
void config_free(struct config *config);

#endif
