/* The cursor always stands at the block's first line, so that whatever another writer prints lands above what is drawn
 * next, and a program that dies leaves the lines below its last words. */
#include "cli/progress.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/utf8.h"

ALLOC_TYPE(progress_type, "progress");

#define FIRST_DRAW 0.3 /* most caches are full before; a flash of lines would tell nobody anything */
#define REDRAW 0.1

struct progress {
	struct loop *loop;
	struct host *host;
	struct loop_timer timer;
	bool drawn; /* lines stand below the cursor */
	struct buf block;
	unsigned lines, room, columns; /* of the block; lines <= room */
	unsigned left_out;
};

static void write_all(const struct buf *text)
{
	for (size_t done = 0; done < text->length;) {
		ssize_t written = write(STDERR_FILENO, text->data + done, text->length - done);
		if (written >= 0)
			done += (size_t)written;
		else if (errno == EAGAIN)
			poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
		else if (errno != EINTR)
			return;
	}
}

static void measure(struct progress *progress)
{
	struct winsize size;
	bool known = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col;
	unsigned rows = known ? size.ws_row : 24;
	progress->columns = known ? size.ws_col : 80;
	progress->room = (rows > 4 ? rows : 4) - 2;
}

/* Cut to the terminal's width: a wrapped line would be two. Wide characters count as one; server texts rarely have
 * them. */
static void append_cut(struct buf *out, const char *text, unsigned columns)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strlen(text);
	for (unsigned column = 1; left && column < columns; column++) {
		size_t sequence = utf8_sequence(at, left);
		bool plain = sequence > 1 || (sequence && *at >= ' ' && *at != 0x7F);
		buf_append(out, plain ? (const void *)at : "?", plain ? sequence : 1);
		at += sequence ? sequence : 1;
		left -= sequence ? sequence : 1;
	}
	buf_append_char(out, '\n');
}

static void append_row(struct buf *line, const struct informer_report *report)
{
	buf_append_format(line, "%s %s: %zu object%s, %s", report->synced ? "+" : "-", report->label, report->objects,
			  report->objects == 1 ? "" : "s", report->state);
	if (*report->message)
		buf_append_format(line, ": %s", report->message);
}

static void add_informer(void *data, struct informer *informer)
{
	struct progress *progress = data;
	struct informer_report report;
	struct buf line;
	if (progress->lines == progress->room) {
		progress->left_out++;
		return;
	}
	buf_init(&line, 0);
	informer_report(informer, &report);
	append_row(&line, &report);
	append_cut(&progress->block, buf_text(&line), progress->columns);
	progress->lines++;
	buf_fini(&line);
}

static void make_block(struct progress *progress)
{
	struct pool *pool = host_pool(progress->host);
	buf_reset(&progress->block);
	progress->lines = progress->left_out = 0;
	measure(progress);
	if (pool)
		pool_each(pool, add_informer, progress);
	if (progress->left_out) {
		buf_append_format(&progress->block, "… and %u more\n", progress->left_out);
		progress->lines++;
	}
}

/* Text, with the block taken away before and drawn again after it, in one write. */
static void show(struct progress *progress, const char *text, size_t length, bool block)
{
	struct buf out;
	buf_init(&out, 0);
	if (progress->drawn)
		buf_append_text(&out, "\r\033[J");
	buf_append(&out, text, length);
	progress->drawn = block && progress->lines;
	if (progress->drawn) {
		buf_append(&out, progress->block.data, progress->block.length);
		buf_append_format(&out, "\033[%uA", progress->lines);
	}
	write_all(&out);
	buf_fini(&out);
}

static void on_log(void *data, const char *line, size_t length)
{
	struct progress *progress = data;
	show(progress, line, length, progress->drawn);
}

static void end(struct progress *progress)
{
	loop_timer_stop(progress->loop, &progress->timer);
	show(progress, NULL, 0, false);
	log_replace(NULL, NULL);
}

static void tick(void *data)
{
	struct progress *progress = data;
	if (host_is_ready(progress->host)) {
		end(progress);
		return;
	}
	make_block(progress);
	show(progress, NULL, 0, true);
	loop_timer_start(progress->loop, &progress->timer, REDRAW);
}

static bool people_read(enum log_format format)
{
	const char *terminal = getenv("TERM");
	return format == LOG_TEXT && isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

struct progress *progress_new(struct loop *loop, struct host *host, enum log_format format)
{
	if (!people_read(format))
		return NULL;
	struct progress *progress = alloc_object(&progress_type, sizeof(*progress));
	progress->loop = loop;
	progress->host = host;
	buf_init(&progress->block, 0);
	loop_timer_init(&progress->timer, tick, progress);
	loop_timer_start(loop, &progress->timer, FIRST_DRAW);
	log_replace(on_log, progress);
	return progress;
}

void progress_free(struct progress *progress)
{
	if (!progress)
		return;
	end(progress);
	buf_fini(&progress->block);
	alloc_object_free(&progress_type, progress);
}
