#include "cache/queue.h"

#include "base/alloc.h"

ALLOC_TYPE(delta_type, "delta");

struct delta *delta_new(enum delta_type type)
{
	struct delta *delta = alloc_object(&delta_type, sizeof(*delta));
	list_init(&delta->node);
	delta->type = type;
	return delta;
}

void delta_free(struct delta *delta)
{
	if (!delta)
		return;
	object_unref(delta->object);
	for (size_t i = 0; i < delta->count; i++)
		object_unref(delta->objects[i]);
	alloc_free(delta->objects);
	alloc_free(delta->namespace);
	alloc_free(delta->version);
	alloc_object_free(&delta_type, delta);
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
