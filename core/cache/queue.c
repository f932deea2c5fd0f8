#include "cache/queue.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(delta_type, "delta");

struct delta *delta_new(enum delta_type type)
{
	struct delta *delta = alloc_object(&delta_type, sizeof(*delta));
	list_init(&delta->node);
	delta->type = type;
	return delta;
}

/* Objects between two looks at the clock. */
#define STRIDE 64

bool delta_free_some(struct delta *delta, double until)
{
	while (delta->count) {
		object_unref(delta->objects[--delta->count]);
		if (delta->count % STRIDE == 0 && clock_now() >= until)
			return false;
	}
	object_unref(delta->object);
	alloc_free(delta->objects);
	alloc_free(delta->namespace);
	alloc_free(delta->version);
	alloc_object_free(&delta_type, delta);
	return true;
}

void delta_free(struct delta *delta)
{
	if (delta)
		delta_free_some(delta, INFINITY);
}

void queue_init(struct queue *queue)
{
	list_init(&queue->deltas);
	queue->count = 0;
}

void queue_fini(struct queue *queue)
{
	for (struct delta *delta; (delta = queue_pop(queue));)
		delta_free(delta);
}

void queue_push(struct queue *queue, struct delta *delta)
{
	list_add_tail(&queue->deltas, &delta->node);
	queue->count++;
}

struct delta *queue_pop(struct queue *queue)
{
	struct list *node = list_pop(&queue->deltas);
	if (!node)
		return NULL;
	queue->count--;
	return LIST_ENTRY(node, struct delta, node);
}
