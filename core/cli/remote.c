#include "cli/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "net/ask.h"
#include "ops/place.h"
#include "script/host.h"
#include "json/scan.h"

#define LONGEST_ANSWER ((size_t)64 << 20)
#define INTRODUCTION 1.0 /* seconds that each of several hosts gets to say what it runs */

struct hosts {
	char *first; /* NULL: there is none */
	size_t count;
};

static void count_host(void *data, const char *path)
{
	struct hosts *hosts = data;
	if (!hosts->count++)
		hosts->first = alloc_string(path);
}

static void print_scripts(struct json_slice status)
{
	struct json_iter iter = json_iterate(json_get(status, "scripts"));
	struct buf names;
	buf_init(&names, 0);
	while (json_next(&iter)) {
		buf_append_text(&names, names.length ? ", " : " ");
		json_string_append(json_get(iter.value, "script"), &names);
	}
	fprintf(stderr, "%s\n", names.length ? buf_text(&names) : " no scripts");
	buf_fini(&names);
}

static void print_host(void *data, const char *path)
{
	(void)data;
	struct buf status;
	struct err err;
	buf_init(&status, LONGEST_ANSWER);
	fprintf(stderr, "  --socket %s :", path);
	if (ask_local(path, "status", INTRODUCTION, NULL, &status, &err) ||
	    json_validate(status.data, status.length, &err))
		fputs(" does not answer\n", stderr);
	else
		print_scripts(json_trim(status.data, status.length));
	buf_fini(&status);
}

static int fail_none(const struct options *options)
{
	struct buf places;
	buf_init(&places, 0);
	place_describe(&places);
	fprintf(stderr,
		"perilune: no host of this user runs here (looked in %s): start one with `perilune run`, or name its "
		"socket with `perilune %s --socket PATH`\n",
		buf_text(&places), options->verb->name);
	buf_fini(&places);
	return EXIT_FAILED;
}

static int fail_several(const struct options *options, size_t count)
{
	fprintf(stderr, "perilune: %zu hosts run; `perilune %s` takes one of\n", count, options->verb->name);
	place_each(print_host, NULL);
	return EXIT_USAGE;
}

static int ask_at(const char *path, const char *request, double seconds, void (*on_slow)(void), struct buf *where,
		  struct buf *out)
{
	struct err err;
	if (where)
		buf_append_text(where, path);
	out->limit = LONGEST_ANSWER;
	if (!ask_local(path, request, seconds, on_slow, out, &err) && !json_validate(out->data, out->length, &err))
		return 0;
	fprintf(stderr, "perilune: %s\n", err.message);
	return EXIT_FAILED;
}

int remote_ask(const struct options *options, const char *request, double seconds, void (*on_slow)(void),
	       struct buf *where, struct buf *out)
{
	struct hosts hosts = {NULL, 0};
	if (options->socket)
		return ask_at(options->socket, request, seconds, on_slow, where, out);
	place_each(count_host, &hosts);
	int code = hosts.count == 0   ? fail_none(options)
		   : hosts.count == 1 ? ask_at(hosts.first, request, seconds, on_slow, where, out)
				      : fail_several(options, hosts.count);
	alloc_free(hosts.first);
	return code;
}
