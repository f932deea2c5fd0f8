#include "kube/frame.h"

#include "base/alloc.h"
#include "json/piece.h"

ALLOC_TYPE(frame_type, "frame");

struct frame {
	frame_fn on_event;
	void *data;
	struct piece piece;
};

static const char *const type_names[] = {
    [FRAME_ADDED] = "ADDED",       [FRAME_MODIFIED] = "MODIFIED", [FRAME_DELETED] = "DELETED",
    [FRAME_BOOKMARK] = "BOOKMARK", [FRAME_ERROR] = "ERROR",
};

struct frame *frame_new(size_t limit, frame_fn on_event, void *data)
{
	static const char *const way[] = {"object", "metadata", NULL};
	struct frame *frame = alloc_object(&frame_type, sizeof(*frame));
	frame->on_event = on_event;
	frame->data = data;
	piece_init(&frame->piece, limit, "an event of the watch", way);
	return frame;
}

void frame_free(struct frame *frame)
{
	if (!frame)
		return;
	piece_fini(&frame->piece);
	alloc_object_free(&frame_type, frame);
}

static enum frame_type type_of(struct json_slice text)
{
	for (int type = FRAME_ADDED; type < FRAME_UNKNOWN; type++)
		if (json_string_equals(text, type_names[type]))
			return (enum frame_type)type;
	return FRAME_UNKNOWN;
}

static int tell(struct frame *frame, struct json_slice value, size_t offset, struct err *err)
{
	struct frame_event event = {.type = FRAME_UNKNOWN};
	struct outline outline = piece_outline(&frame->piece, value);
	struct outline_iter iter = outline_iterate(&outline);
	while (outline_next(&iter)) {
		if (json_string_equals(iter.key, "type"))
			event.type_text = iter.value.bytes;
		else if (json_string_equals(iter.key, "object"))
			event.object = iter.value;
	}
	if (json_type(event.type_text) != JSON_STRING)
		return err_set(err, "", "byte %zu: an event of the watch has no type", offset);
	if (json_type(event.object.bytes) != JSON_OBJECT)
		return err_set(err, "", "byte %zu: an event of the watch has no object", offset);
	event.type = type_of(event.type_text);
	return frame->on_event(frame->data, &event, err) ? -1 : 0;
}

/* One event, or as much of it as there is. */
static int step(void *data, const char **at, const char *end, struct err *err)
{
	struct frame *frame = data;
	struct piece *piece = &frame->piece;
	struct json_slice value;
	size_t offset = piece_is_open(piece) ? piece->held_at : piece_offset(piece, *at);
	if (!piece_is_open(piece) && **at != '{')
		return err_set(err, "", "byte %zu: expected '{', the start of an event", offset);
	int got = piece_read(piece, at, end, &value, err);
	if (got <= 0)
		return got;
	if (tell(frame, value, offset, err))
		return -1;
	piece_drop(piece);
	return 1;
}

int frame_feed(struct frame *frame, const char *bytes, size_t length, struct err *err)
{
	return piece_feed(&frame->piece, bytes, length, step, frame, err);
}

int frame_finish(const struct frame *frame, struct err *err)
{
	if (piece_is_open(&frame->piece))
		return err_set(err, "", "the watch ended inside an event, at byte %zu", frame->piece.fed);
	return 0;
}
