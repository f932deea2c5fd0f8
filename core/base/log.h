/* log: one line for each message on stderr, as text for people or JSON for programs.
 *
 * Text: "2030-01-02T03:04:05.678Z INFO  message key=value …"; JSON keys: time, level, msg, then the fields in order.
 * A newline or control character in a key or value never starts a line of its own. Written with one write(2) a line. */
#ifndef PERILUNE_BASE_LOG_H
#define PERILUNE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_NOTHING }; /* the last is above all, and no message's */
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
	const char *key;   /* script, informer, controller, kind, namespace, name, attempt, error, file … */
	const char *value; /* NULL leaves the field out */
};

void log_set_format(enum log_format format);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* fields ends with {NULL, NULL}; may be NULL. */
void log_write(enum log_level level, const struct log_field *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define LOG_FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {NULL, NULL}})
#define log_debug(fields, ...) (log_enabled(LOG_DEBUG) ? log_write(LOG_DEBUG, fields, __VA_ARGS__) : (void)0)
#define log_info(fields, ...) log_write(LOG_INFO, fields, __VA_ARGS__)
#define log_warn(fields, ...) log_write(LOG_WARN, fields, __VA_ARGS__)
#define log_error(fields, ...) log_write(LOG_ERROR, fields, __VA_ARGS__)

int log_parse_level(const char *text, enum log_level *level);    /* 0, or -1 for an unknown word */
int log_parse_format(const char *text, enum log_format *format); /* 0, or -1 for an unknown word */

/* Called with each finished line (newline included) instead of writing to stderr; NULL restores it. For specs and
 * progress display. */
void log_replace(void (*fn)(void *data, const char *line, size_t length), void *data);

/* While fn is set, it gets each line as JSON (newline included), and what is below `shown` goes nowhere else. NULL: no
 * more. */
void log_tap(void (*fn)(void *data, const char *line, size_t length), void *data, enum log_level shown);

#endif
