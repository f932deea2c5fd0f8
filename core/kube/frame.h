/* frame: the bytes of a watch answer to single events. Chunks of any size in; one {"type":…,"object":…} at a time out.
 *
 * Frames are JSON values one after another, usually a line each. Work is linear in the bytes. */
#ifndef PERILUNE_KUBE_FRAME_H
#define PERILUNE_KUBE_FRAME_H

#include "json/outline.h"

enum frame_type { FRAME_ADDED, FRAME_MODIFIED, FRAME_DELETED, FRAME_BOOKMARK, FRAME_ERROR, FRAME_UNKNOWN };

struct frame_event {
	enum frame_type type;
	struct outline object;       /* borrowed for the call; its members and those of its metadata are noted */
	struct json_slice type_text; /* for FRAME_UNKNOWN's message */
};

/* A non-zero return stops: frame_feed returns -1 and leaves err alone. */
typedef int (*frame_fn)(void *data, const struct frame_event *event, struct err *err);

struct frame;
struct frame *frame_new(size_t limit, frame_fn on_event, void *data); /* limit: most bytes of one event */
void frame_free(struct frame *frame);
/* 0, or -1 with err: malformed, too large, on_event's own. After -1 only frame_free is allowed. */
int frame_feed(struct frame *frame, const char *bytes, size_t length, struct err *err);
/* At the end of the stream: 0, or -1 with err when it ended inside an event. */
int frame_finish(const struct frame *frame, struct err *err);

#endif
