/* buf: a growable run of bytes. `data` is NUL-terminated behind `length` whenever it is not NULL. */
#ifndef PERILUNE_BASE_BUF_H
#define PERILUNE_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t length;
	size_t capacity;
	size_t limit; /* most bytes it may ever hold; 0 is no limit. Set it where a peer chooses the size. */
};

void buf_init(struct buf *buf, size_t limit);
void buf_fini(struct buf *buf);
void buf_reset(struct buf *buf); /* empty again, memory kept */

/* 0, or -1 when the limit would be passed or memory is out: then nothing was appended. Without a limit
 * they cannot fail. */
int buf_append(struct buf *buf, const void *bytes, size_t length);
int buf_append_text(struct buf *buf, const char *text);
int buf_append_char(struct buf *buf, char c);
int buf_append_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Quoted and escaped; invalid UTF-8 becomes U+FFFD. */
int buf_append_json_string(struct buf *buf, const char *bytes, size_t length);
/* Room for extra bytes behind length; NULL as -1 above. */
char *buf_reserve(struct buf *buf, size_t extra);

void buf_consume(struct buf *buf, size_t length); /* drops the first length bytes */
const char *buf_text(const struct buf *buf);      /* borrowed; "" when empty */
char *buf_take(struct buf *buf); /* the NUL-terminated memory, owned by the caller; buf is empty after it */

#endif
