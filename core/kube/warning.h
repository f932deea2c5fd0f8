/* warning: what the server says in Warning headers, logged once each. */
#ifndef PERILUNE_KUBE_WARNING_H
#define PERILUNE_KUBE_WARNING_H

#include "base/strmap.h"

/* seen: the texts that were logged. Bounded, since the server chooses them. script: whose call it is that the server
 * warns of; NULL: no script's. */
void warning_log(struct strmap *seen, const char *text, const char *script);

#endif
