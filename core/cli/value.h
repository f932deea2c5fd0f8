/* value: a text of the command line to a value. */
#ifndef PERILUNE_CLI_VALUE_H
#define PERILUNE_CLI_VALUE_H

#include <stddef.h>

struct value_texts {
	const char **items; /* ended by NULL once there is one; NULL before; the texts are borrowed */
	size_t count;
};
void value_texts_add(struct value_texts *texts, const char *text);
void value_texts_fini(struct value_texts *texts);

/* A switch that may be left alone. */
enum value_choice { CHOICE_OPEN, CHOICE_YES, CHOICE_NO };

struct value_lease {
	char namespace[64], name[254]; /* "" where not given */
};

/* A kind of value. read returns 0, or -1 for a malformed text and then leaves *out alone. */
struct value_kind {
	int (*read)(const char *text, void *out);
	const char *expected; /* "a duration such as 30s", for the message */
};

extern const struct value_kind value_text;      /* const char *; not empty */
extern const struct value_kind value_switch;    /* bool */
extern const struct value_kind value_choice;    /* enum value_choice */
extern const struct value_kind value_duration;  /* double, seconds */
extern const struct value_kind value_size;      /* size_t, bytes */
extern const struct value_kind value_address;   /* const char *: ADDR:PORT or "off" */
extern const struct value_kind value_namespace; /* const char * */
extern const struct value_kind value_lease;     /* struct value_lease: NAMESPACE/NAME */
extern const struct value_kind value_setting;   /* struct value_texts: one more key=value */
extern const struct value_kind value_path;      /* struct value_texts: one more file or folder */
extern const struct value_kind value_level;     /* enum log_level */
extern const struct value_kind value_format;    /* enum log_format */
extern const struct value_kind value_output;    /* const char *: "text" or "json" */

#endif
