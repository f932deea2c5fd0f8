#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void err_clear(struct err *err)
{
	*err = (struct err){.retry_after = -1};
}

/* Copies text as one line, cut between characters; a control character (C1 too, which some terminals obey) becomes a
 * space. */
static void copy_line(char *out, size_t size, const char *text)
{
	size_t length = strnlen(text, size);
	if (length == size) {
		length = size - 1;
		while (length && utf8_is_tail((unsigned char)text[length]))
			length--;
	}
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i], next = (unsigned char)text[i + 1];
		bool c1 = c == 0xC2 && next >= 0x80 && next < 0xA0;
		out[i] = c < ' ' || c == 0x7F || c1 ? ' ' : text[i];
		if (c1)
			out[++i] = ' ';
	}
	out[length] = '\0';
}

/* The arguments may point into err itself (a message wrapped in another), so err is written last. */
int err_set(struct err *err, const char *reason, const char *format, ...)
{
	if (!err)
		return -1;
	struct err made;
	char text[sizeof(made.message) + 4]; /* a character more than fits, so that the cut is seen */
	err_clear(&made);
	copy_line(made.reason, sizeof(made.reason), reason);
	va_list args;
	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);
	copy_line(made.message, sizeof(made.message), text);
	*err = made;
	return -1;
}

int err_prefix(struct err *err, const char *format, ...)
{
	if (!err)
		return -1;
	char text[2 * sizeof(err->message)];
	size_t half = sizeof(err->message);
	va_list args;
	va_start(args, format);
	if (vsnprintf(text, half - 2, format, args) < 0)
		text[0] = '\0';
	va_end(args);
	size_t length = strlen(text);
	snprintf(text + length, sizeof(text) - length, ": %s", err->message);
	copy_line(err->message, sizeof(err->message), text);
	return -1;
}
