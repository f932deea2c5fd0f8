/* credential: who we are for a while: the answer of an exec plugin, checked. An ExecCredential in; texts out. */
#ifndef PERILUNE_KUBE_CREDENTIAL_H
#define PERILUNE_KUBE_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Owned texts, NULL where not given; all zero is none. A certificate always comes with its key. */
struct credential {
	char *token;
	char *cert, *key;  /* PEM */
	double expires_at; /* clock_wall's scale; infinite when it was not said */
};

/* bytes are what the plugin printed: a JSON object of kind ExecCredential and that apiVersion. 0, or -1 with err, which
 * shows nothing of bytes, and *credential empty. */
int credential_read(struct credential *credential, const char *bytes, size_t length, const char *api_version,
		    struct err *err);
void credential_fini(struct credential *credential); /* wiped and empty */

/* Fit for a header: one line of visible characters; anything else would be a way to add headers. */
bool credential_is_token(const char *text);
/* Whether a PEM block of that label ("CERTIFICATE") is in it. */
bool credential_is_pem(const char *text, const char *label);

#endif
