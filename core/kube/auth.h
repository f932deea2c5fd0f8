/* auth: the credentials of one cluster, kept fresh. Config in; TLS material and an Authorization header out.
 *
 * Files are read when first needed and again when `auth_fresh_seconds` have passed (60 for token files, as client-go
 * does) or when the server said 401. Credentials are never sent over plain http. */
#ifndef PERILUNE_KUBE_AUTH_H
#define PERILUNE_KUBE_AUTH_H

#include "kube/config.h"
#include "net/http.h"

struct auth;

/* config is borrowed for the auth's life. NULL with err when a file can't be read or is no PEM. */
struct auth *auth_new(const struct config *config, struct err *err);
void auth_free(struct auth *auth);

/* Brings the credentials up to date; cheap when nothing is due. *changed_tls says that connections made before must not
 * be used for new requests. 0, or -1 with err when a file is gone: the old credentials stay in use. */
int auth_refresh(struct auth *auth, bool *changed_tls, struct err *err);
/* After a 401: reads all again. True when something changed, so that one repetition makes sense. */
bool auth_reject(struct auth *auth);

struct http_tls *auth_tls(const struct auth *auth); /* borrowed; may change in auth_refresh and auth_reject */
const char *auth_header(const struct auth *auth);   /* "Authorization: Bearer …", borrowed as above; NULL for none */
/* Another number after each change: a request that was refused with older credentials is worth a repetition without
 * auth_reject. */
unsigned auth_generation(const struct auth *auth);

#endif
