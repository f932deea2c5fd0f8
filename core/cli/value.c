#include "cli/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

void value_texts_add(struct value_texts *texts, const char *text)
{
	texts->items = alloc_resize(texts->items, (texts->count + 2) * sizeof(*texts->items));
	texts->items[texts->count++] = text;
	texts->items[texts->count] = NULL;
}

void value_texts_fini(struct value_texts *texts)
{
	alloc_free(texts->items);
	*texts = (struct value_texts){NULL, 0};
}

static int keep(const char *text, void *out)
{
	*(const char **)out = text;
	return 0;
}

static int read_text(const char *text, void *out)
{
	return *text ? keep(text, out) : -1;
}

static int read_switch(const char *text, void *out)
{
	bool on = !strcmp(text, "true");
	if (!on && strcmp(text, "false") != 0)
		return -1;
	*(bool *)out = on;
	return 0;
}

static int read_choice(const char *text, void *out)
{
	bool yes;
	if (read_switch(text, &yes))
		return -1;
	*(enum value_choice *)out = yes ? CHOICE_YES : CHOICE_NO;
	return 0;
}

static int read_duration(const char *text, void *out)
{
	double seconds = clock_duration(text);
	if (seconds < 0)
		return -1;
	*(double *)out = seconds;
	return 0;
}

/* Kubernetes quantities ("64Mi", "64M") with or without a B behind them; a bare number is bytes. 0 for an unknown one.
 */
static double unit_of(const char *text)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"", 1},    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
		     {"k", 1e3}, {"K", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12}};
	size_t length = strlen(text);
	if (length && text[length - 1] == 'B')
		length--;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strlen(units[i].name) == length && !strncmp(units[i].name, text, length))
			return units[i].bytes;
	return 0;
}

#define LEAST_BARE 65536 /* no script starts in so little: a unit was forgotten */

static int read_size(const char *text, void *out)
{
	size_t digits = strspn(text, "0123456789");
	size_t number = strspn(text, "0123456789.");
	double unit = unit_of(text + number), bytes = strtod(text, NULL) * unit;
	bool bare = !text[number] && bytes > 0;
	if (!digits || unit <= 0 || bytes > (double)(SIZE_MAX / 2) || (bare && bytes < LEAST_BARE))
		return -1;
	if (text[digits] == '.' && strspn(text + digits + 1, "0123456789") != number - digits - 1)
		return -1;
	*(size_t *)out = (size_t)bytes;
	return 0;
}

static bool is_port(const char *text)
{
	size_t length = strspn(text, "0123456789");
	return length >= 1 && length <= 5 && !text[length] && atoi(text) <= UINT16_MAX;
}

/* An address or a name; brackets around an IPv6 address; nothing for all addresses. */
static bool is_host(const char *text, size_t length)
{
	bool bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
	if (bracketed)
		return strspn(text + 1, "0123456789abcdefABCDEF:.") == length - 2;
	return strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-") == length;
}

static int read_address(const char *text, void *out)
{
	const char *colon = strrchr(text, ':');
	if (!strcmp(text, "off") || (colon && is_host(text, (size_t)(colon - text)) && is_port(colon + 1)))
		return keep(text, out);
	return -1;
}

/* A DNS label, as the API server demands; anything else would only ever find nothing. */
static bool is_label(const char *text, size_t length)
{
	return length >= 1 && length <= 63 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length &&
	       text[0] != '-' && text[length - 1] != '-';
}

static int read_namespace(const char *text, void *out)
{
	return is_label(text, strlen(text)) ? keep(text, out) : -1;
}

/* Labels with dots between them. */
static bool is_subdomain(const char *text)
{
	size_t length = strcspn(text, ".");
	if (strlen(text) > 253)
		return false;
	for (; is_label(text, length); length = strcspn(text, ".")) {
		if (!text[length])
			return true;
		text += length + 1;
	}
	return false;
}

static int read_lease(const char *text, void *out)
{
	struct value_lease *lease = out;
	size_t length = strcspn(text, "/");
	if (!text[length] || !is_label(text, length) || !is_subdomain(text + length + 1))
		return -1;
	snprintf(lease->namespace, sizeof(lease->namespace), "%.*s", (int)length, text);
	snprintf(lease->name, sizeof(lease->name), "%s", text + length + 1);
	return 0;
}

static int read_path(const char *text, void *out)
{
	if (!*text)
		return -1;
	value_texts_add(out, text);
	return 0;
}

static int read_setting(const char *text, void *out)
{
	const char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return -1;
	value_texts_add(out, text);
	return 0;
}

static int read_level(const char *text, void *out)
{
	return log_parse_level(text, out);
}

static int read_format(const char *text, void *out)
{
	return log_parse_format(text, out);
}

static int read_output(const char *text, void *out)
{
	return !strcmp(text, "json") || !strcmp(text, "text") ? keep(text, out) : -1;
}

const struct value_kind value_text = {read_text, "a name or path"};
const struct value_kind value_switch = {read_switch, "true or false"};
const struct value_kind value_choice = {read_choice, "true or false"};
const struct value_kind value_duration = {read_duration, "a duration such as 30s, 2m, 1h30m or 0"};
const struct value_kind value_size = {read_size, "a size such as 64MiB, 1GiB or 0"};
const struct value_kind value_address = {read_address, "ADDR:PORT such as 127.0.0.1:8080, :8080 or [::1]:8080, or off"};
const struct value_kind value_namespace = {read_namespace, "a namespace's name"};
const struct value_kind value_lease = {read_lease, "NAMESPACE/NAME"};
const struct value_kind value_setting = {read_setting, "key=value"};
const struct value_kind value_path = {read_path, "a file or folder"};
const struct value_kind value_level = {read_level, "debug, info, warn or error"};
const struct value_kind value_format = {read_format, "text or json"};
const struct value_kind value_output = {read_output, "text or json"};
