#include "net/mux_gate.h"

#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(origin_type, "mux_origin");

#define LONGEST_HOLD 1.0

/* Lives as long as a transfer to it does. */
struct mux_origin {
	struct mux_gate *gate;
	char *name;
	unsigned transfers;
	struct mux_transfer *settling; /* admitted and without a connection; NULL: the next may go */
	struct list waiting;
	bool open;
	struct loop_job next;
	struct loop_timer relief;
};

void mux_gate_init(struct mux_gate *gate, struct loop *loop, void (*admit)(struct mux_transfer *transfer))
{
	gate->loop = loop;
	gate->admit = admit;
	strmap_init(&gate->origins);
}

void mux_gate_fini(struct mux_gate *gate)
{
	strmap_fini(&gate->origins);
}

static void admit(struct mux_origin *origin, struct mux_transfer *transfer)
{
	if (!origin->open) {
		origin->settling = transfer;
		loop_timer_start(origin->gate->loop, &origin->relief, LONGEST_HOLD);
	}
	origin->gate->admit(transfer);
}

static void admit_next(void *data)
{
	struct mux_origin *origin = data;
	struct list *node;
	while (!origin->settling && (node = list_pop(&origin->waiting)))
		admit(origin, LIST_ENTRY(node, struct mux_transfer, gate_node));
}

static void let_next(struct mux_origin *origin)
{
	origin->settling = NULL;
	loop_timer_stop(origin->gate->loop, &origin->relief);
	if (!list_is_empty(&origin->waiting))
		loop_post(origin->gate->loop, &origin->next);
}

static void on_relief(void *data)
{
	let_next(data);
}

static struct mux_origin *origin_new(struct mux_gate *gate, const char *name)
{
	struct mux_origin *origin = alloc_object(&origin_type, sizeof(*origin));
	origin->gate = gate;
	origin->name = alloc_string(name);
	list_init(&origin->waiting);
	loop_job_init(&origin->next, admit_next, origin);
	loop_timer_init(&origin->relief, on_relief, origin);
	strmap_put(&gate->origins, name, strlen(name), origin);
	return origin;
}

static void origin_free(struct mux_origin *origin)
{
	strmap_remove(&origin->gate->origins, origin->name, strlen(origin->name));
	loop_job_cancel(&origin->next);
	loop_timer_stop(origin->gate->loop, &origin->relief);
	alloc_free(origin->name);
	alloc_object_free(&origin_type, origin);
}

void mux_gate_enter(struct mux_gate *gate, struct mux_transfer *transfer)
{
	list_init(&transfer->gate_node);
	if (!transfer->origin_name) {
		gate->admit(transfer);
		return;
	}
	struct mux_origin *origin = strmap_get(&gate->origins, transfer->origin_name, strlen(transfer->origin_name));
	if (!origin)
		origin = origin_new(gate, transfer->origin_name);
	origin->transfers++;
	transfer->origin = origin;
	if (!origin->settling && list_is_empty(&origin->waiting))
		admit(origin, transfer);
	else
		list_add_tail(&origin->waiting, &transfer->gate_node);
}

void mux_gate_settled(struct mux_transfer *transfer)
{
	if (transfer->origin && transfer->origin->settling == transfer)
		let_next(transfer->origin);
}

void mux_gate_open(struct mux_transfer *transfer)
{
	struct mux_origin *origin = transfer->origin;
	if (!origin || origin->open)
		return;
	origin->open = true;
	let_next(origin);
}

void mux_gate_leave(struct mux_transfer *transfer)
{
	struct mux_origin *origin = transfer->origin;
	if (!origin)
		return;
	transfer->origin = NULL;
	list_remove(&transfer->gate_node);
	if (origin->settling == transfer)
		let_next(origin);
	if (--origin->transfers == 0)
		origin_free(origin);
}
