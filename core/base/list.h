/* list: an intrusive, circular, doubly linked list. A node that is in no list points to itself. */
#ifndef PERILUNE_BASE_LIST_H
#define PERILUNE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* Walks from the head; the current node may be removed in the body. */
#define LIST_EACH(head, node)                                                                                          \
	for (struct list *node = (head)->next, *node##_next = node->next; node != (head);                              \
	     node = node##_next, node##_next = node->next)

static inline void list_init(struct list *list)
{
	list->prev = list->next = list;
}

static inline bool list_is_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Harmless when the node is in no list (but initialised). */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* The first node, taken out; NULL when empty. */
static inline struct list *list_pop(struct list *head)
{
	if (list_is_empty(head))
		return NULL;
	struct list *node = head->next;
	list_remove(node);
	return node;
}

/* All nodes of from go to the tail of to; from is empty after it. */
static inline void list_move(struct list *to, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#endif
