#include "ops/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(process_type, "process");

enum { RESIDENT, CPU, OPEN_FDS, MAX_FDS, START, BUILD, FAMILIES };

static const struct metric_definition table[FAMILIES] = {
    [RESIDENT] = {.type = METRIC_GAUGE,
		  .name = "process_resident_memory_bytes",
		  .help = "Resident memory size in bytes."},
    [CPU] = {.type = METRIC_COUNTER,
	     .name = "process_cpu_seconds_total",
	     .help = "Total user and system CPU time spent in seconds."},
    [OPEN_FDS] = {.type = METRIC_GAUGE, .name = "process_open_fds", .help = "Number of open file descriptors."},
    [MAX_FDS] = {.type = METRIC_GAUGE, .name = "process_max_fds", .help = "Most file descriptors that may be open."},
    [START] = {.type = METRIC_GAUGE,
	       .name = "process_start_time_seconds",
	       .help = "Start of the process, in seconds since 1970-01-01 UTC."},
    [BUILD] = {.type = METRIC_GAUGE,
	       .name = "perilune_build_info",
	       .help = "1, with the version of the program as label.",
	       .labels = {"version"}},
};

struct process {
	struct metric_collector collector;
	struct metric_family *families[FAMILIES];
	double started_at; /* clock_wall's scale; 0 where it is not known */
};

/* The start of a file under /proc/self, as text. False when it can't be read. */
static bool read_file(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t length = fread(out, 1, size - 1, file);
	out[length] = '\0';
	fclose(file);
	return length > 0;
}

/* The 22nd field of /proc/self/stat, in ticks since boot. The second one, the name, may hold spaces and brackets. */
static double start_time(void)
{
	char text[1024];
	unsigned long long ticks;
	struct timespec now;
	if (!read_file("/proc/self/stat", text, sizeof(text)))
		return 0;
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &now))
		return 0;
	double since_boot = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	return clock_wall() - since_boot + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static void give(const struct process *process, int family, double value)
{
	metric_collect(process->families[family], NULL, value);
}

static void collect_memory(const struct process *process)
{
	char text[256];
	unsigned long long pages;
	if (read_file("/proc/self/statm", text, sizeof(text)) && sscanf(text, "%*u %llu", &pages) == 1)
		give(process, RESIDENT, (double)pages * (double)sysconf(_SC_PAGESIZE));
}

static void collect_descriptors(const struct process *process)
{
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return;
	int count = -1; /* the folder's own */
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += *entry->d_name != '.';
	closedir(folder);
	give(process, OPEN_FDS, count);
}

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void collect(void *data)
{
	const struct process *process = data;
	struct rusage usage;
	struct rlimit limit;
	collect_memory(process);
	collect_descriptors(process);
	if (!getrusage(RUSAGE_SELF, &usage))
		give(process, CPU, seconds(&usage.ru_utime) + seconds(&usage.ru_stime));
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		give(process, MAX_FDS, (double)limit.rlim_cur);
	if (process->started_at > 0)
		give(process, START, process->started_at);
}

struct process *process_new(struct metric_registry *registry)
{
	struct process *process = alloc_object(&process_type, sizeof(*process));
	process->started_at = start_time();
	process->collector.collect = collect;
	process->collector.data = process;
	metric_define(registry, table, FAMILIES, process->families);
	metric_collector_add(registry, &process->collector);
	metric_set(metric_keep(process->families[BUILD], (const char *const[]){PERILUNE_VERSION}), 1);
	return process;
}

void process_free(struct process *process)
{
	metric_collector_remove(&process->collector);
	alloc_object_free(&process_type, process);
}
