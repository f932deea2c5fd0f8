/* work_driver COUNT: a work queue with so many keys, as added and as delayed ones. Prints "NAME NUMBER" lines: the
 * memory that they took, and the time of an add and of a get with its end. The spec judges. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "work/workqueue.h"

static struct loop *loop;
static struct metric_registry *registry;
static long count;

static void on_ready(void *data)
{
	(void)data;
}

/* Bytes of this process that are in memory. */
static double resident(void)
{
	long pages[2] = {0, 0};
	FILE *file = fopen("/proc/self/statm", "r");
	if (file && fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2)
		pages[1] = 0;
	if (file)
		fclose(file);
	return (double)pages[1] * (double)sysconf(_SC_PAGESIZE);
}

static struct workqueue *make_queue(void)
{
	struct workqueue_options options = {
	    .name = "driver", .base = 0.005, .max = 1000, .metrics = registry, .on_ready = on_ready};
	return workqueue_new(loop, &options);
}

static void fill(struct workqueue *queue, double seconds)
{
	for (long i = 1; i <= count; i++) {
		char key[64];
		int length = snprintf(key, sizeof(key), "shop/web-%06ld", i);
		workqueue_add_after(queue, key, (size_t)length, WORK_HIGH, seconds);
	}
}

static void drain(struct workqueue *queue)
{
	for (struct work_item *item; (item = workqueue_get(queue));)
		workqueue_done(queue, item);
}

static double each(double began)
{
	return (clock_now() - began) / (double)count * 1e9;
}

static void measure_added(void)
{
	struct workqueue *queue = make_queue();
	double before = resident(), began = clock_now();
	fill(queue, 0);
	printf("add_ns %.0f\n", each(began));
	printf("added_bytes %.0f\n", resident() - before);
	began = clock_now();
	drain(queue);
	printf("get_ns %.0f\n", each(began));
	workqueue_free(queue);
	malloc_trim(0);
}

static void measure_delayed(void)
{
	struct workqueue *queue = make_queue();
	double before = resident(), began = clock_now();
	fill(queue, 3600);
	printf("add_after_ns %.0f\n", each(began));
	printf("delayed_bytes %.0f\n", resident() - before);
	workqueue_free(queue);
}

int main(int argc, char **argv)
{
	struct err err;
	count = argc > 1 ? atol(argv[1]) : 0;
	loop = loop_new(&err);
	if (count < 1 || !loop)
		return 2;
	registry = metric_registry_new();
	measure_added();
	measure_delayed();
	metric_registry_free(registry);
	loop_free(loop);
	return 0;
}
