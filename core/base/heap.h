/* heap: a binary min-heap of embedded nodes, ordered by a double (a time in seconds). Equal ones come out in
 * no order. */
#ifndef PERILUNE_BASE_HEAP_H
#define PERILUNE_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
	double at;
	size_t place; /* 1-based place in nodes; 0 when in no heap */
};

struct heap {
	struct heap_node **nodes; /* nodes[0] is the earliest */
	size_t count, capacity;
};

void heap_init(struct heap *heap);
void heap_fini(struct heap *heap); /* nodes are not touched */

void heap_push(struct heap *heap, struct heap_node *node, double at); /* moves it when it is already in. O(log n) */
void heap_remove(struct heap *heap, struct heap_node *node);          /* harmless when in no heap. O(log n) */
struct heap_node *heap_first(const struct heap *heap);                /* NULL when empty */

#endif
