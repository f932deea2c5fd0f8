/* plugin: an exec plugin as the user's entry of a kubeconfig describes it; and one run of it. The entry in; the
 * command, and later a credential, out.
 *
 * What kubectl takes: client.authentication.k8s.io/v1 and v1beta1. The plugin never sees a terminal. */
#ifndef PERILUNE_KUBE_PLUGIN_H
#define PERILUNE_KUBE_PLUGIN_H

#include "kube/credential.h"
#include "kube/kubeconfig.h"
#include "net/child.h"

struct plugin {
	char *place;        /* `FILE: user "NAME": exec`, for messages */
	char *api_version;  /* "client.authentication.k8s.io/v1" */
	char **argv;        /* ended by NULL; a command with a slash is resolved against the kubeconfig */
	char **environment; /* "NAME=value", ended by NULL; beside this process's own */
	char *install_hint; /* NULL where none is given */
	bool wants_cluster; /* provideClusterInfo */
};

/* *plugin NULL where the user has none. 0, or -1 with err: a member of another type, a version that nobody takes, a
 * plugin that can only work with a terminal. */
int plugin_read(struct plugin **plugin, const struct kubeconfig_entry *user, struct err *err);
void plugin_free(struct plugin *plugin);

/* One run. */
struct plugin_run;
/* credential is for the callee to take (it is filled and wiped afterwards); NULL with err. */
typedef void (*plugin_fn)(void *data, struct credential *credential, const struct err *err);

/* plugin is borrowed for the run, info (KUBERNETES_EXEC_INFO's value) for the call. NULL with err when it can't be
 * started. on_done is called once, from the loop, unless the run is cancelled. */
struct plugin_run *plugin_start(struct loop *loop, const struct plugin *plugin, const char *info, plugin_fn on_done,
				void *data, struct err *err);
void plugin_cancel(struct plugin_run *run);

#endif
