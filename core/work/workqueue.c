#include "work/workqueue.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/keymap.h"
#include "work/ratelimit.h"
#include "work/workmeter.h"

ALLOC_TYPE(workqueue_type, "workqueue");
ALLOC_TYPE(item_type, "work_item");

#define PRIORITIES 2
#define LEAST_WAIT 1e-5   /* what is due sooner is due: a timer's time and an item's may differ by a rounding */
#define MOST_AT_ONCE 1000 /* items whose time has come; the rest in the next turn, so that others get theirs */

/* In the line of its priority when added and not running, in the list of the running when running, else in neither. */
struct work_item {
	struct list node;
	struct heap_node due; /* in the delays while it waits for a time; never when added */
	double added_at;      /* when added */
	double taken_at;      /* when running */
	uint32_t length;
	unsigned failures;
	uint8_t priority; /* that it waits with */
	uint8_t taken_as; /* the priority that it had when it was taken */
	bool added;       /* can be taken, or, when running, once it is done */
	bool running;
	char key[]; /* with a NUL behind it */
};

struct line {
	struct list items;
	size_t count;
};

struct workqueue {
	struct loop *loop;
	void (*on_ready)(void *data);
	void *data;
	struct ratelimit limit;
	struct workmeter *meter;
	struct keymap items;           /* all there are */
	struct line lines[PRIORITIES]; /* by enum work_priority */
	struct list running;           /* the one taken first first */
	size_t running_count;
	struct heap delays;
	struct loop_timer timer; /* at the first of the delays; none after the shutdown */
	unsigned high_run;       /* of high priority that were taken one after another while low ones waited */
	bool told;               /* on_ready was, or will be, called, and workqueue_get has not found nothing since */
	bool shut;
	struct loop_job ready;
};

static const char *key_of(const void *item, size_t *length)
{
	return work_item_key(item, length);
}

/* The last thing it does is the call: its queue may be freed in it. */
static void run_ready(void *data)
{
	struct workqueue *queue = data;
	queue->on_ready(queue->data);
}

static void on_timer(void *data);
static void report(void *data, struct workmeter_state *out);

struct workqueue *workqueue_new(struct loop *loop, const struct workqueue_options *options)
{
	struct workqueue *queue = alloc_object(&workqueue_type, sizeof(*queue));
	queue->loop = loop;
	queue->on_ready = options->on_ready;
	queue->data = options->data;
	ratelimit_init(&queue->limit, options->base, options->max, options->qps, options->burst);
	queue->meter = workmeter_new(options->metrics, options->name, report, queue);
	keymap_init(&queue->items, key_of);
	for (int priority = 0; priority < PRIORITIES; priority++)
		list_init(&queue->lines[priority].items);
	list_init(&queue->running);
	heap_init(&queue->delays);
	loop_timer_init(&queue->timer, on_timer, queue);
	loop_job_init(&queue->ready, run_ready, queue);
	return queue;
}

void workqueue_free(struct workqueue *queue)
{
	if (!queue)
		return;
	assert(!queue->running_count);
	loop_timer_stop(queue->loop, &queue->timer);
	loop_job_cancel(&queue->ready);
	size_t cursor = 0;
	for (struct work_item *item; (item = keymap_next(&queue->items, &cursor));)
		alloc_object_free(&item_type, item);
	keymap_fini(&queue->items);
	heap_fini(&queue->delays);
	workmeter_free(queue->meter);
	alloc_object_free(&workqueue_type, queue);
}

/* --- items --- */

/* The item of the key, made when there is none. */
static struct work_item *item_of(struct workqueue *queue, const char *key, size_t length)
{
	struct work_item *item = keymap_get(&queue->items, key, length);
	if (item)
		return item;
	item = alloc_object(&item_type, sizeof(*item) + length + 1);
	list_init(&item->node);
	item->length = (uint32_t)length;
	memcpy(item->key, key, length);
	keymap_put(&queue->items, item);
	return item;
}

static bool is_delayed(const struct work_item *item)
{
	return item->due.place != 0;
}

static void free_if_idle(struct workqueue *queue, struct work_item *item)
{
	if (item->added || item->running || is_delayed(item) || item->failures)
		return;
	keymap_remove(&queue->items, item->key, item->length);
	alloc_object_free(&item_type, item);
}

/* --- lines --- */

static void tell_ready(struct workqueue *queue)
{
	if (queue->told || queue->shut)
		return;
	queue->told = true;
	loop_post(queue->loop, &queue->ready);
}

static void enter_line(struct workqueue *queue, struct work_item *item)
{
	struct line *line = &queue->lines[item->priority];
	list_add_tail(&line->items, &item->node);
	line->count++;
	tell_ready(queue);
}

static void leave_line(struct workqueue *queue, struct work_item *item)
{
	list_remove(&item->node);
	queue->lines[item->priority].count--;
}

/* A key that does not wait yet waits with this priority; one that does waits with the higher of both. */
static void raise_priority(struct workqueue *queue, struct work_item *item, enum work_priority priority)
{
	bool in_line = item->added && !item->running;
	if ((item->added || is_delayed(item)) && priority >= item->priority)
		return;
	if (in_line)
		leave_line(queue, item);
	item->priority = (uint8_t)priority;
	if (in_line)
		enter_line(queue, item);
}

static void make_added(struct workqueue *queue, struct work_item *item)
{
	if (item->added)
		return;
	item->added = true;
	item->added_at = clock_now();
	workmeter_added(queue->meter);
	if (!item->running)
		enter_line(queue, item);
}

/* --- delays --- */

static void set_timer(struct workqueue *queue)
{
	const struct heap_node *first = heap_first(&queue->delays);
	if (first && !queue->shut)
		loop_timer_start(queue->loop, &queue->timer, first->at - clock_now());
	else
		loop_timer_stop(queue->loop, &queue->timer);
}

static void on_timer(void *data)
{
	struct workqueue *queue = data;
	double now = clock_now() + LEAST_WAIT;
	struct heap_node *node;
	for (int i = 0; i < MOST_AT_ONCE && (node = heap_first(&queue->delays)) && node->at <= now; i++) {
		heap_remove(&queue->delays, node);
		make_added(queue, LIST_ENTRY(node, struct work_item, due));
	}
	set_timer(queue);
}

static void end_delay(struct workqueue *queue, struct work_item *item)
{
	bool was_first = heap_first(&queue->delays) == &item->due;
	heap_remove(&queue->delays, &item->due);
	if (was_first)
		set_timer(queue);
}

/* Of two times the earlier stands. */
static void delay(struct workqueue *queue, struct work_item *item, double seconds)
{
	double at = clock_now() + seconds;
	if (is_delayed(item) && item->due.at <= at)
		return;
	heap_push(&queue->delays, &item->due, at);
	if (heap_first(&queue->delays) == &item->due)
		set_timer(queue);
}

/* --- what a source does --- */

void workqueue_limit(struct workqueue *queue, double base, double max, double qps, unsigned burst)
{
	ratelimit_init(&queue->limit, base, max, qps, burst);
}

void workqueue_add(struct workqueue *queue, const char *key, size_t length, enum work_priority priority)
{
	if (queue->shut)
		return;
	struct work_item *item = item_of(queue, key, length);
	if (priority == WORK_LOW && item->failures && is_delayed(item))
		return;
	raise_priority(queue, item, priority);
	end_delay(queue, item);
	make_added(queue, item);
}

void workqueue_add_after(struct workqueue *queue, const char *key, size_t length, enum work_priority priority,
			 double seconds)
{
	if (!(seconds > 0)) {
		workqueue_add(queue, key, length, priority);
		return;
	}
	if (queue->shut)
		return;
	workmeter_delayed(queue->meter);
	struct work_item *item = item_of(queue, key, length);
	if (item->added)
		return;
	raise_priority(queue, item, priority);
	delay(queue, item, seconds);
}

/* --- what a worker does --- */

static struct line *next_line(struct workqueue *queue)
{
	struct line *high = &queue->lines[WORK_HIGH], *low = &queue->lines[WORK_LOW];
	if (low->count && (!high->count || queue->high_run == WORKQUEUE_HIGH_RUN)) {
		queue->high_run = 0;
		return low;
	}
	queue->high_run = low->count ? queue->high_run + 1 : 0;
	return high->count ? high : NULL;
}

struct work_item *workqueue_get(struct workqueue *queue)
{
	struct line *line = queue->shut ? NULL : next_line(queue);
	if (!line) {
		queue->told = false;
		loop_job_cancel(&queue->ready);
		return NULL;
	}
	struct work_item *item = LIST_ENTRY(line->items.next, struct work_item, node);
	leave_line(queue, item);
	item->added = false;
	item->running = true;
	item->taken_as = item->priority;
	item->taken_at = clock_now();
	list_add_tail(&queue->running, &item->node);
	queue->running_count++;
	workmeter_taken(queue->meter, item->taken_at - item->added_at);
	return item;
}

void workqueue_done(struct workqueue *queue, struct work_item *item)
{
	assert(item->running);
	workmeter_done(queue->meter, clock_now() - item->taken_at);
	list_remove(&item->node);
	item->running = false;
	queue->running_count--;
	if (item->added)
		enter_line(queue, item);
	else
		free_if_idle(queue, item);
}

double workqueue_retry(struct workqueue *queue, struct work_item *item)
{
	assert(item->running);
	double seconds = ratelimit_next(&queue->limit, item->failures++);
	workqueue_add_after(queue, item->key, item->length, item->taken_as, seconds);
	return seconds;
}

void workqueue_forget(struct workqueue *queue, struct work_item *item)
{
	(void)queue;
	assert(item->running);
	item->failures = 0;
}

const char *work_item_key(const struct work_item *item, size_t *length)
{
	*length = item->length;
	return item->key;
}

unsigned work_item_failures(const struct work_item *item)
{
	return item->failures;
}

enum work_priority work_item_priority(const struct work_item *item)
{
	return item->taken_as;
}

double work_item_taken_at(const struct work_item *item)
{
	return item->taken_at;
}

/* --- the whole --- */

void workqueue_shutdown(struct workqueue *queue)
{
	queue->shut = true;
	loop_job_cancel(&queue->ready);
	set_timer(queue);
}

void workqueue_reopen(struct workqueue *queue)
{
	queue->shut = queue->told = false;
	set_timer(queue);
	if (workqueue_depth(queue))
		tell_ready(queue);
}

size_t workqueue_depth(const struct workqueue *queue)
{
	return queue->lines[WORK_HIGH].count + queue->lines[WORK_LOW].count;
}

size_t workqueue_delayed(const struct workqueue *queue)
{
	return queue->delays.count;
}

size_t workqueue_running(const struct workqueue *queue)
{
	return queue->running_count;
}

double workqueue_age(const struct workqueue *queue)
{
	double oldest = clock_now(), now = oldest;
	for (int priority = 0; priority < PRIORITIES; priority++) {
		const struct list *items = &queue->lines[priority].items;
		if (!list_is_empty(items))
			oldest = fmin(oldest, LIST_ENTRY(items->next, struct work_item, node)->added_at);
	}
	return now - oldest;
}

static void report(void *data, struct workmeter_state *out)
{
	struct workqueue *queue = data;
	double now = clock_now();
	*out = (struct workmeter_state){.high = queue->lines[WORK_HIGH].count, .low = queue->lines[WORK_LOW].count};
	LIST_EACH (&queue->running, node) {
		double worked_on = now - LIST_ENTRY(node, struct work_item, node)->taken_at;
		out->unfinished += worked_on;
		out->longest = fmax(out->longest, worked_on);
	}
}

static bool is_sound(const struct workqueue *queue, const struct work_item *item)
{
	bool delayed = is_delayed(item), in_list = item->added || item->running;
	return (in_list || delayed || item->failures) && !(item->added && delayed) &&
	       list_is_empty(&item->node) != in_list &&
	       (!delayed || queue->delays.nodes[item->due.place - 1] == &item->due) &&
	       keymap_get(&queue->items, item->key, item->length) == item;
}

void workqueue_check(const struct workqueue *queue)
{
#ifdef PERILUNE_DEBUG
	size_t running = 0, delayed = 0, waiting[PRIORITIES] = {0}, lined[PRIORITIES] = {0};
	size_t cursor = 0;
	for (const struct work_item *item; (item = keymap_next(&queue->items, &cursor));) {
		assert(is_sound(queue, item));
		running += item->running;
		delayed += is_delayed(item);
		waiting[item->priority] += item->added && !item->running;
	}
	for (int priority = 0; priority < PRIORITIES; priority++) {
		LIST_EACH (&queue->lines[priority].items, node)
			lined[priority] += LIST_ENTRY(node, const struct work_item, node)->priority == priority;
		assert(lined[priority] == waiting[priority] && lined[priority] == queue->lines[priority].count);
	}
	keymap_check(&queue->items);
	assert(running == queue->running_count && delayed == queue->delays.count);
	assert(queue->shut || !delayed || loop_timer_active(&queue->timer));
	assert(queue->shut || queue->told || !workqueue_depth(queue));
#else
	(void)queue, (void)is_sound;
#endif
}
