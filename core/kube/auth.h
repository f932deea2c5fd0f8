/* auth: the credentials of one cluster, kept fresh. Config in; TLS material and headers out.
 *
 * Files are read when first needed, again for the first request after a minute, and when the server said 401. An exec
 * plugin runs when its credential is first needed, has expired, or was refused. Credentials are never sent over plain
 * http. */
#ifndef PERILUNE_KUBE_AUTH_H
#define PERILUNE_KUBE_AUTH_H

#include "kube/config.h"
#include "kube/exec.h"
#include "net/http.h"

struct auth;

/* config is borrowed for the auth's life. NULL with err when a file can't be read or is no PEM. */
struct auth *auth_new(struct loop *loop, const struct config *config, struct err *err);
void auth_free(struct auth *auth); /* nobody may wait */

/* Brings the credentials up to date; cheap when nothing is due. *changed_tls says that connections made before must not
 * be used for new requests. 0, or -1 with err when a file is gone: the old credentials stay in use. */
int auth_refresh(struct auth *auth, bool *changed_tls, struct err *err);
/* True when the credentials are there; else wait is told, later, when to refresh and to ask again. */
bool auth_ready(struct auth *auth, struct exec_wait *wait);
/* Reads all files again. True when something changed, so that one repetition makes sense. */
bool auth_reread(struct auth *auth);
/* The same where the server does not accept the credentials, or where they can't be used at all: a plugin will run
 * again, too. */
bool auth_reject(struct auth *auth);

struct http_tls *auth_tls(const struct auth *auth); /* borrowed; may change in auth_refresh and auth_reject */
/* "Authorization: Bearer …" and those that impersonate, ended by NULL; borrowed as above. */
const char *const *auth_headers(const struct auth *auth);
/* Another number after each change: a request that was refused with older credentials is worth a repetition without
 * auth_reject. */
unsigned auth_generation(const struct auth *auth);

#endif
