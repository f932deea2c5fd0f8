#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "net/http_private.h"

#define LONGEST_RETRY_AFTER 3600
#define MOST_FIELDS 1000

static double parse_retry_after(const char *value)
{
	char *end;
	double seconds = strtod(value, &end);
	if (end == value || !isdigit((unsigned char)*value)) {
		time_t date = curl_getdate(value, NULL);
		if (date < 0)
			return -1;
		seconds = fmax((double)date - clock_wall(), 0);
	}
	return fmin(seconds, LONGEST_RETRY_AFTER);
}

/* The bytes of a quoted string, unquoted, to warnings. Returns what is behind the closing quote. */
static const char *append_unquoted(struct buf *warnings, const char *text)
{
	for (; *text && *text != '"'; text++) {
		if (*text == '\\' && text[1])
			text++;
		buf_append_char(warnings, *text);
	}
	buf_append_char(warnings, '\0');
	return *text ? text + 1 : text;
}

/* A list of: code agent "text" ["date"]. Only the text counts. A value without quotes is taken whole, as some proxies
 * write it. */
static void parse_warnings(struct buf *warnings, const char *value)
{
	if (!strchr(value, '"')) {
		buf_append(warnings, value, strlen(value) + 1);
		return;
	}
	for (const char *quote; (quote = strchr(value, '"'));) {
		value = append_unquoted(warnings, quote + 1);
		value += strspn(value, " ");
		if (*value == '"')
			value = strchr(value + 1, '"') ? strchr(value + 1, '"') + 1 : "";
	}
}

/* The value when line is "name: value", without the blanks before it; NULL otherwise. */
static const char *header_value(const char *line, const char *name)
{
	size_t length = strlen(name);
	if (strncasecmp(line, name, length) != 0 || line[length] != ':')
		return NULL;
	line += length + 1;
	return line + strspn(line, " \t");
}

static void begin_head(struct http *http, const char *line)
{
	http->head_begun = true;
	http->head = (struct http_head){.retry_after = -1};
	buf_reset(&http->warnings);
	buf_reset(&http->fields);
	http->field_count = 0;
	const char *status = strchr(line, ' ');
	http->head.status = status ? atoi(status) : 0;
	if (strncmp(line, "HTTP/1", 6) == 0)
		mux_unshared(&http->transfer);
}

static void end_head(struct http *http)
{
	if (http->head.status < 200)
		return;
	http->head_complete = true;
	loop_post(mux_loop(http->mux), &http->job);
}

static void read_field(struct http *http, const char *line)
{
	const char *value;
	if ((value = header_value(line, "retry-after")))
		http->head.retry_after = parse_retry_after(value);
	else if ((value = header_value(line, "content-type")))
		snprintf(http->head.content_type, sizeof(http->head.content_type), "%s", value);
	else if ((value = header_value(line, "warning")))
		parse_warnings(&http->warnings, value);
}

/* line is as it came. -1 when there are too many of them, or too long ones. */
static int keep_field(struct http *http, const char *line, size_t length)
{
	const char *colon = memchr(line, ':', length), *end = line + length;
	if (!colon || memchr(line, '\0', length))
		return 0;
	for (const char *at = line; at < colon; at++)
		buf_append_char(&http->fields, (char)tolower((unsigned char)*at));
	buf_append_char(&http->fields, '\0');
	for (colon++; colon < end && isspace((unsigned char)*colon);)
		colon++;
	while (end > colon && isspace((unsigned char)end[-1]))
		end--;
	bool few = ++http->field_count <= MOST_FIELDS;
	if (few && !buf_append(&http->fields, colon, (size_t)(end - colon)) && !buf_append_char(&http->fields, '\0'))
		return 0;
	http->failure = HTTP_TOO_LARGE;
	snprintf(http->message, sizeof(http->message), "the head of the answer has more than %d fields or %zu bytes",
		 MOST_FIELDS, http->fields.limit);
	return -1;
}

static void read_line(struct http *http, const char *line)
{
	if (strncmp(line, "HTTP/", 5) == 0)
		begin_head(http, line);
	else if (!*line)
		end_head(http);
	else
		read_field(http, line);
}

/* Trailers come here too, after the head is complete. Fields that matter are short; a longer line than the copy holds
 * is cut. */
size_t http_on_header(char *bytes, size_t size, size_t count, void *data)
{
	struct http *http = data;
	size_t length = size * count;
	http->last_byte_at = clock_now();
	if (http->head_complete)
		return length;
	char line[4096];
	size_t kept = length < sizeof(line) ? length : sizeof(line) - 1;
	memcpy(line, bytes, kept);
	while (kept && isspace((unsigned char)line[kept - 1]))
		kept--;
	line[kept] = '\0';
	read_line(http, line);
	return http->keeps_fields && keep_field(http, bytes, length) ? 0 : length;
}
