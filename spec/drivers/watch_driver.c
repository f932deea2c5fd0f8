/* watch_driver PATH...: core/net/watch.h, until SIGTERM. Prints "watching", then "changed" each time that it is told.
 */
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "net/watch.h"

static struct loop *loop;

static void on_change(void *data)
{
	puts(data);
}

static void stop(void *data)
{
	(void)data;
	loop_stop(loop);
}

int main(int argc, char **argv)
{
	struct err err;
	setvbuf(stdout, NULL, _IOLBF, 0);
	loop = loop_new(&err);
	struct watch *watch = watch_new(loop, ".lua", on_change, "changed", &err);
	for (int i = 1; i < argc; i++)
		watch_add(watch, argv[i]);
	loop_on_signal(loop, SIGTERM, stop, NULL);
	puts("watching");
	loop_run(loop);
	watch_free(watch);
	loop_free(loop);
	return alloc_live(stderr) ? 1 : 0;
}
