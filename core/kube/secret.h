/* secret: texts that must not linger: credentials read from files, decoded, and wiped when given back. */
#ifndef PERILUNE_KUBE_SECRET_H
#define PERILUNE_KUBE_SECRET_H

#include <stddef.h>

#include "base/err.h"

#define SECRET_FILE_LIMIT ((size_t)16 << 20)

/* A whole file, with a NUL behind it, owned by the caller. NULL with err (path and cause) and errno set; EFBIG for more
 * than SECRET_FILE_LIMIT bytes. length may be NULL. */
char *secret_read(const char *path, size_t *length, struct err *err);

void secret_free(char *text);         /* wiped, then freed; NULL is harmless */
void secret_texts_free(char **texts); /* an array ended by NULL, and its texts */

/* Standard base64; line breaks are skipped, as Go does. The decoded text, owned by the caller; NULL when malformed. */
char *secret_decode(const char *base64, size_t *length);
char *secret_encode(const char *bytes, size_t length);

#endif
