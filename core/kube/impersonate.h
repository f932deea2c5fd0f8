/* impersonate: acting as somebody else: as, as-uid, as-groups and as-user-extra of a user's entry in; header lines out.
 */
#ifndef PERILUNE_KUBE_IMPERSONATE_H
#define PERILUNE_KUBE_IMPERSONATE_H

#include "kube/kubeconfig.h"

/* *lines: "Impersonate-User: …" and the like, ended by NULL, for secret_texts_free; NULL where the entry asks for none.
 * 0, or -1 with err: of another type, no text for a header, groups and the like without a user. */
int impersonate_read(const struct kubeconfig_entry *user, char ***lines, struct err *err);

#endif
