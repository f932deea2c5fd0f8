/* What has come of a streamed answer and was not told yet, in blocks: megabytes in one piece would be copied as they
 * grow, and leave a hole in the heap. */
#include <string.h>

#include "base/alloc.h"
#include "net/http_private.h"

#define FIRST ((size_t)CURL_MAX_WRITE_SIZE) /* bytes of the block that an idle stream keeps */

static struct http_block *new_block(size_t room)
{
	struct http_block *block = alloc_resize(NULL, sizeof(*block) + room);
	list_init(&block->node);
	block->room = room;
	block->length = 0;
	return block;
}

static struct http_block *add_block(struct http *http)
{
	bool first = list_is_empty(&http->backlog);
	struct http_block *block = first ? http->spare : NULL;
	if (block)
		http->spare = NULL;
	else
		block = new_block(first ? FIRST : HTTP_SLICE);
	list_add_tail(&http->backlog, &block->node);
	http->blocks++;
	return block;
}

static struct http_block *last(const struct http *http)
{
	return list_is_empty(&http->backlog) ? NULL : LIST_ENTRY(http->backlog.prev, struct http_block, node);
}

void http_backlog_add(struct http *http, const char *bytes, size_t length)
{
	while (length) {
		struct http_block *block = last(http);
		if (!block || block->length == block->room)
			block = add_block(http);
		size_t room = block->room - block->length, count = length < room ? length : room;
		memcpy(block->bytes + block->length, bytes, count);
		block->length += count;
		bytes += count;
		length -= count;
	}
}

bool http_backlog_is_long(const struct http *http)
{
	return http->blocks > 2;
}

struct http_block *http_backlog_take(struct http *http)
{
	http->blocks--;
	return LIST_ENTRY(list_pop(&http->backlog), struct http_block, node);
}

void http_backlog_give(struct http *http, struct http_block *block)
{
	if (http->spare || block->room != FIRST) {
		alloc_free(block);
		return;
	}
	block->length = 0;
	http->spare = block;
}

void http_backlog_free(struct http *http)
{
	while (!list_is_empty(&http->backlog))
		alloc_free(http_backlog_take(http));
	alloc_free(http->spare);
}
