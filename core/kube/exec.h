/* exec: the credential of a cluster's exec plugin, kept. The configuration in; a credential out, when it is there.
 *
 * The plugin runs when a credential is first asked for, after it has expired and after the server has refused it; never
 * twice at once, and whoever asks meanwhile waits for that run. After a failure all who ask get its error until a
 * backoff has passed. */
#ifndef PERILUNE_KUBE_EXEC_H
#define PERILUNE_KUBE_EXEC_H

#include "kube/config.h"
#include "kube/credential.h"
#include "net/loop.h"

/* Somebody who waits; embedded in its owner, its node initialised. on_ready is called once, from the loop, when asking
 * again makes sense (err NULL) or the plugin has failed. To leave before that, remove the node. */
struct exec_wait {
	struct list node;
	void (*on_ready)(void *data, const struct err *err);
	void *data;
};

struct exec;

/* config is borrowed, and has a plugin. */
struct exec *exec_new(struct loop *loop, const struct config *config);
void exec_free(struct exec *exec); /* nobody may wait */

/* True when the credential may be used now; else wait is told later. ca: the cluster's authorities as PEM text, for the
 * plugin; NULL for the system's. */
bool exec_ready(struct exec *exec, const char *ca, struct exec_wait *wait);
/* The server has refused the credential. True when another is to be had, by exec_ready. */
bool exec_reject(struct exec *exec);

const struct credential *exec_credential(const struct exec *exec); /* borrowed; empty before the first run */
unsigned exec_serial(const struct exec *exec);                     /* another number after each successful run */

#endif
