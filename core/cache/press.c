#include "cache/press.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"

ALLOC_TYPE(press_type, "press");

/* A batch is a millisecond or two of work. */
#define ITEMS 64
#define BYTES ((size_t)256 * 1024)

struct item {
	struct object *object; /* counted; raw until the batch ends, as nobody else packs what is in no line */
	struct json_slice json;
	size_t at, length; /* in out; 0 where it would not be smaller */
};

struct press {
	struct bell *bell;
	struct dictionary_worker *worker;
	struct dictionary *dictionary; /* counted; NULL: no batch */
	struct item items[ITEMS];
	size_t count, bytes;
	struct buf out; /* has room for all of their JSON before the thread begins */
	pthread_t thread;
	bool threaded;
	sem_t call; /* for each batch, and to end */
	atomic_bool ending, ready;
};

static void pack(struct press *press)
{
	char *to = press->out.data;
	size_t at = 0;
	for (size_t i = 0; i < press->count; i++) {
		struct item *item = &press->items[i];
		item->at = at;
		item->length = dictionary_worker_pack(press->worker, press->dictionary, item->json, to + at);
		at += item->length;
	}
	atomic_store(&press->ready, true);
	bell_ring(press->bell);
}

static bool await_call(struct press *press)
{
	while (sem_wait(&press->call) && errno == EINTR)
		continue;
	return !atomic_load(&press->ending);
}

static void *run(void *data)
{
	struct press *press = data;
	thread_give_way();
	while (await_call(press))
		pack(press);
	return NULL;
}

struct press *press_new(struct bell *bell)
{
	struct press *press = alloc_object(&press_type, sizeof(*press));
	press->bell = bell;
	press->worker = dictionary_worker_new();
	buf_init(&press->out, 0);
	sem_init(&press->call, 0, 0);
	press->threaded = thread_start(&press->thread, run, press);
	return press;
}

static void fill(struct press *press, struct object_line *line)
{
	press->count = press->bytes = 0;
	while (press->count < ITEMS && press->bytes < BYTES) {
		struct object *object = object_line_take(line);
		if (!object)
			return;
		if (!object_is_packable(object)) {
			object_unref(object);
			continue;
		}
		struct item *item = &press->items[press->count++];
		item->object = object;
		item->json = object_open(object, NULL);
		press->bytes += item->json.length;
	}
}

void press_begin(struct press *press, struct object_line *line, struct dictionary *dictionary)
{
	assert(!press->dictionary);
	press->dictionary = dictionary_ref(dictionary);
	dictionary_wake(dictionary);
	fill(press, line);
	buf_reserve(&press->out, press->bytes);
	atomic_store(&press->ready, false);
	if (press->threaded)
		sem_post(&press->call);
	else
		pack(press);
}

bool press_is_busy(const struct press *press)
{
	return press->dictionary != NULL;
}

bool press_is_ready(const struct press *press)
{
	return press->dictionary && atomic_load(&press->ready);
}

/* One that only the batch still held is of no use to anybody. */
static void end_item(const struct press *press, const struct item *item, bool keep)
{
	if (keep && item->length && !object_is_only_mine(item->object))
		object_set_packed(item->object, press->dictionary,
				  (struct json_slice){press->out.data + item->at, item->length});
	object_unref(item->object);
}

static void end(struct press *press, bool keep)
{
	for (size_t i = 0; i < press->count; i++)
		end_item(press, &press->items[i], keep);
	dictionary_unref(press->dictionary);
	press->dictionary = NULL;
}

size_t press_end(struct press *press)
{
	assert(press_is_ready(press));
	end(press, true);
	return press->bytes;
}

void press_free(struct press *press)
{
	if (!press)
		return;
	if (press->threaded) {
		atomic_store(&press->ending, true);
		sem_post(&press->call);
		pthread_join(press->thread, NULL);
	}
	if (press->dictionary)
		end(press, false);
	sem_destroy(&press->call);
	buf_fini(&press->out);
	dictionary_worker_free(press->worker);
	alloc_object_free(&press_type, press);
}
