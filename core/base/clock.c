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

char *clock_format(double wall, char *out, size_t size)
{
	if (!(wall >= 0)) /* NaN too */
		wall = 0;
	int64_t milliseconds = (int64_t)floor(fmin(wall, LAST_SECOND) * 1000 + 0.5);
	time_t seconds = (time_t)(milliseconds / 1000);
	struct tm parts;
	gmtime_r(&seconds, &parts);
	size_t length = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(out + length, size - length, ".%03uZ", (unsigned)(milliseconds % 1000));
	return out;
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
