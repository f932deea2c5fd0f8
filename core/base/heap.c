#include "base/heap.h"

#include "base/alloc.h"

void heap_init(struct heap *heap)
{
	*heap = (struct heap){0};
}

void heap_fini(struct heap *heap)
{
	alloc_free(heap->nodes);
	heap_init(heap);
}

/* Places are 1-based, so that a place of 0 says "in no heap" and the parent of n is n / 2. */
static void put(struct heap *heap, size_t place, struct heap_node *node)
{
	heap->nodes[place - 1] = node;
	node->place = place;
}

static void move_up(struct heap *heap, size_t place, struct heap_node *node)
{
	for (; place > 1 && heap->nodes[place / 2 - 1]->at > node->at; place /= 2)
		put(heap, place, heap->nodes[place / 2 - 1]);
	put(heap, place, node);
}

static void move_down(struct heap *heap, size_t place, struct heap_node *node)
{
	for (size_t child; (child = place * 2) <= heap->count; place = child) {
		if (child < heap->count && heap->nodes[child]->at < heap->nodes[child - 1]->at)
			child++;
		if (heap->nodes[child - 1]->at >= node->at)
			break;
		put(heap, place, heap->nodes[child - 1]);
	}
	put(heap, place, node);
}

static void settle(struct heap *heap, size_t place, struct heap_node *node)
{
	if (place > 1 && heap->nodes[place / 2 - 1]->at > node->at)
		move_up(heap, place, node);
	else
		move_down(heap, place, node);
}

void heap_push(struct heap *heap, struct heap_node *node, double at)
{
	node->at = at;
	if (node->place) {
		settle(heap, node->place, node);
		return;
	}
	if (heap->count == heap->capacity) {
		heap->capacity = heap->capacity ? heap->capacity * 2 : 16;
		heap->nodes = alloc_resize(heap->nodes, heap->capacity * sizeof(*heap->nodes));
	}
	heap->count++;
	move_up(heap, heap->count, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	size_t place = node->place;
	if (!place)
		return;
	node->place = 0;
	struct heap_node *last = heap->nodes[--heap->count];
	if (last != node)
		settle(heap, place, last);
}

struct heap_node *heap_first(const struct heap *heap)
{
	return heap->count ? heap->nodes[0] : NULL;
}
