#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

static enum log_level least = LOG_INFO;
static enum log_format form = LOG_TEXT;
static void (*replaced)(void *data, const char *line, size_t length);
static void *replaced_data;
static void (*tapped)(void *data, const char *line, size_t length);
static void *tapped_data;
static enum log_level tapped_shown;

static const struct {
	const char *word, *column;
} levels[] = {{"debug", "DEBUG"}, {"info", "INFO "}, {"warn", "WARN "}, {"error", "ERROR"}};

void log_set_format(enum log_format format)
{
	form = format;
}

void log_set_level(enum log_level level)
{
	least = level;
}

bool log_enabled(enum log_level level)
{
	return level >= least;
}

void log_replace(void (*fn)(void *data, const char *line, size_t length), void *data)
{
	replaced = fn;
	replaced_data = data;
}

void log_tap(void (*fn)(void *data, const char *line, size_t length), void *data, enum log_level shown)
{
	tapped = fn;
	tapped_data = data;
	tapped_shown = shown;
}

int log_parse_level(const char *text, enum log_level *level)
{
	for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
		if (!strcmp(text, levels[i].word)) {
			*level = (enum log_level)i;
			return 0;
		}
	return -1;
}

int log_parse_format(const char *text, enum log_format *format)
{
	bool json = !strcmp(text, "json");
	if (!json && strcmp(text, "text") != 0)
		return -1;
	*format = json ? LOG_JSON : LOG_TEXT;
	return 0;
}

/* One character of text for a terminal: controls (C1 too, which some terminals obey) and bytes that are no UTF-8 are
 * spelt out. */
static void append_character(struct buf *line, const unsigned char *at, size_t sequence, bool quoted)
{
	static const char short_forms[0x20] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
	unsigned char last = at[sequence ? sequence - 1 : 0];
	if (!sequence)
		buf_append_format(line, "\\x%02x", last);
	else if (quoted && (last == '"' || last == '\\'))
		buf_append_format(line, "\\%c", last);
	else if (last < 0x20 && short_forms[last])
		buf_append_format(line, "\\%c", short_forms[last]);
	else if (last < 0x20 || last == 0x7F || (sequence == 2 && at[0] == 0xC2 && last < 0xA0))
		buf_append_format(line, "\\u%04x", last);
	else
		buf_append(line, at, sequence);
}

static void append_readable(struct buf *line, const char *text, bool quoted)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
	while (at < end) {
		size_t sequence = utf8_sequence(at, (size_t)(end - at));
		append_character(line, at, sequence, quoted);
		at += sequence ? sequence : 1;
	}
}

/* Bare where it is one plain word, else in quotes. */
static void append_word(struct buf *line, const char *text)
{
	bool bare = *text != '\0';
	for (const unsigned char *at = (const unsigned char *)text; *at && bare; at++)
		bare = *at > ' ' && *at < 0x7F && *at != '"' && *at != '=' && *at != '\\';
	if (bare) {
		buf_append_text(line, text);
		return;
	}
	buf_append_char(line, '"');
	append_readable(line, text, true);
	buf_append_char(line, '"');
}

static void append_text_line(struct buf *line, enum log_level level, const char *time, const char *message,
			     const struct log_field *fields)
{
	buf_append_format(line, "%s %s ", time, levels[level].column);
	append_readable(line, message, false);
	for (; fields && fields->key; fields++) {
		if (!fields->value)
			continue;
		buf_append_char(line, ' ');
		append_word(line, fields->key);
		buf_append_char(line, '=');
		append_word(line, fields->value);
	}
}

static void append_json_line(struct buf *line, enum log_level level, const char *time, const char *message,
			     const struct log_field *fields)
{
	buf_append_format(line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", time, levels[level].word);
	buf_append_json_string(line, message, strlen(message));
	for (; fields && fields->key; fields++) {
		if (!fields->value)
			continue;
		buf_append_char(line, ',');
		buf_append_json_string(line, fields->key, strlen(fields->key));
		buf_append_char(line, ':');
		buf_append_json_string(line, fields->value, strlen(fields->value));
	}
	buf_append_char(line, '}');
}

/* One write for the whole line, so that lines of several processes do not mix. stderr may be shared with someone who
 * made it non-blocking; then waiting is what a blocking one would do. */
static void write_line(const char *line, size_t length)
{
	while (length) {
		ssize_t written = write(STDERR_FILENO, line, length);
		if (written >= 0) {
			line += written;
			length -= (size_t)written;
		} else if (errno == EAGAIN) {
			poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void append_line(struct buf *line, enum log_format format, enum log_level level, const char *message,
			const struct log_field *fields)
{
	char time[32];
	clock_format(clock_wall(), time, sizeof(time));
	buf_reset(line);
	if (format == LOG_JSON)
		append_json_line(line, level, time, message, fields);
	else
		append_text_line(line, level, time, message, fields);
	buf_append_char(line, '\n');
}

static void put_line(enum log_level level, const char *message, const struct log_field *fields)
{
	struct buf line;
	buf_init(&line, 0);
	bool shown = !tapped || level >= tapped_shown;
	if (tapped) {
		append_line(&line, LOG_JSON, level, message, fields);
		tapped(tapped_data, line.data, line.length);
	}
	if (shown)
		append_line(&line, form, level, message, fields);
	if (shown && replaced)
		replaced(replaced_data, line.data, line.length);
	else if (shown)
		write_line(line.data, line.length);
	buf_fini(&line);
}

void log_write(enum log_level level, const struct log_field *fields, const char *format, ...)
{
	if (!log_enabled(level))
		return;
	int saved = errno; /* callers log first and look at errno after; %m works too */
	struct buf message;
	buf_init(&message, 0);
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	if (length > 0) {
		vsnprintf(buf_reserve(&message, (size_t)length), (size_t)length + 1, format, again);
		message.length = (size_t)length;
	}
	va_end(again);
	va_end(args);
	put_line(level, buf_text(&message), fields);
	buf_fini(&message);
	errno = saved;
}
