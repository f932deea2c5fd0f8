#include "base/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LAST_SECOND 253402300799.0 /* 9999-12-31T23:59:59Z, the last that RFC 3339 can write */

static clock_fn replaced_now, replaced_wall;
static void *replaced_data;

static bool stopped;
static double stopped_now, stopped_wall;
static double ahead; /* of the system's clock: what was moved while it stood still */

static double read_clock(clockid_t id)
{
	struct timespec time;
	clock_gettime(id, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* CLOCK_BOOTTIME and not CLOCK_MONOTONIC: a lease runs out, and a watch dies, while this machine is suspended too. */
static double running_now(void)
{
	return replaced_now ? replaced_now(replaced_data) : ahead + read_clock(CLOCK_BOOTTIME);
}

double clock_now(void)
{
	return stopped ? stopped_now : running_now();
}

double clock_wall(void)
{
	if (stopped)
		return stopped_wall;
	return replaced_wall ? replaced_wall(replaced_data) : read_clock(CLOCK_REALTIME);
}

void clock_replace(clock_fn now, clock_fn wall, void *data)
{
	replaced_now = now;
	replaced_wall = wall;
	replaced_data = data;
}

void clock_stop(void)
{
	stopped_now = clock_now();
	stopped_wall = clock_wall();
	stopped = true;
}

void clock_set(double now)
{
	stopped_wall += now - stopped_now;
	stopped_now = now;
}

void clock_go(void)
{
	if (!stopped)
		return;
	stopped = false;
	ahead += stopped_now - running_now();
}

bool clock_is_stopped(void)
{
	return stopped;
}

double clock_real(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static char *format(double wall, int digits, char *out, size_t size)
{
	int64_t scale = 1;
	for (int i = 0; i < digits; i++)
		scale *= 10;
	if (!(wall >= 0)) /* NaN too */
		wall = 0;
	int64_t ticks = (int64_t)floor(fmin(wall, LAST_SECOND) * (double)scale + 0.5);
	time_t seconds = (time_t)(ticks / scale);
	struct tm parts;
	gmtime_r(&seconds, &parts);
	size_t length = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out + length, size - length, ".%0*uZ", digits, (unsigned)(ticks % scale));
	return out;
}

char *clock_format(double wall, char *out, size_t size)
{
	return format(wall, 3, out, size);
}

char *clock_format_micro(double wall, char *out, size_t size)
{
	return format(wall, 6, out, size);
}

/* So many digits that stand for a number in these bounds; moves *text behind them. */
static bool read_digits(const char **text, int count, int least, int most, int *out)
{
	for (*out = 0; count; count--, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		*out = *out * 10 + (**text - '0');
	}
	return *out >= least && *out <= most;
}

static bool read_character(const char **text, char wanted)
{
	bool there = **text == wanted;
	*text += there;
	return there;
}

static bool read_date(const char **text, struct tm *parts)
{
	return read_digits(text, 4, 0, 9999, &parts->tm_year) && read_character(text, '-') &&
	       read_digits(text, 2, 1, 12, &parts->tm_mon) && read_character(text, '-') &&
	       read_digits(text, 2, 1, 31, &parts->tm_mday);
}

static bool read_time(const char **text, struct tm *parts)
{
	return read_digits(text, 2, 0, 23, &parts->tm_hour) && read_character(text, ':') &&
	       read_digits(text, 2, 0, 59, &parts->tm_min) && read_character(text, ':') &&
	       read_digits(text, 2, 0, 59, &parts->tm_sec);
}

static bool read_fraction(const char **text, double *fraction)
{
	double weight = 1;
	*fraction = 0;
	if (!read_character(text, '.'))
		return true;
	for (; **text >= '0' && **text <= '9'; (*text)++)
		*fraction += (**text - '0') * (weight /= 10);
	return weight < 1;
}

/* Seconds east of UTC. */
static bool read_offset(const char **text, int *offset)
{
	int hours, minutes;
	*offset = 0;
	if (read_character(text, 'Z'))
		return true;
	bool east = read_character(text, '+');
	if ((!east && !read_character(text, '-')) || !read_digits(text, 2, 0, 23, &hours) ||
	    !read_character(text, ':') || !read_digits(text, 2, 0, 59, &minutes))
		return false;
	*offset = (east ? 60 : -60) * (hours * 60 + minutes);
	return true;
}

double clock_parse(const char *text)
{
	struct tm parts = {0};
	double fraction;
	int offset;
	if (!read_date(&text, &parts) || !read_character(&text, 'T') || !read_time(&text, &parts) ||
	    !read_fraction(&text, &fraction) || !read_offset(&text, &offset) || *text)
		return NAN;
	int day = parts.tm_mday;
	parts.tm_year -= 1900;
	parts.tm_mon--;
	double whole = (double)timegm(&parts);
	return parts.tm_mday == day ? whole + fraction - offset : NAN; /* timegm makes a later day of 31 June */
}

/* "1", "1.5", ".5" or "1." as Go takes it; moves *text behind it. False when there is no digit. */
static bool read_decimal(const char **text, double *out)
{
	const char *at = *text;
	double value = 0, weight = 1;
	int digits = 0;
	for (; *at >= '0' && *at <= '9'; at++, digits++)
		value = value * 10 + (*at - '0');
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++, digits++)
			value = value * 10 + (*at - '0'), weight *= 10;
	*text = at;
	*out = value / weight;
	return digits > 0;
}

static double read_unit(const char **text)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}}; /* ms before m */
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].name);
		if (!strncmp(*text, units[i].name, length)) {
			*text += length;
			return units[i].seconds;
		}
	}
	return 0;
}

double clock_duration(const char *text)
{
	double sum = 0, value;
	if (!strcmp(text, "0"))
		return 0;
	if (!*text)
		return -1;
	while (*text) {
		double unit;
		if (!read_decimal(&text, &value) || (unit = read_unit(&text)) <= 0)
			return -1;
		sum += value * unit;
	}
	return isfinite(sum) ? sum : -1;
}
