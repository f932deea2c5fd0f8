#include "cache/packer.h"

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "cache/press.h"
#include "cache/samples.h"

ALLOC_TYPE(packer_type, "packer");

#define TURN 0.003 /* seconds of packing in the loop at a time */
#define FLOOD (2 * PACKER_BUDGET)
#define PAUSE 1.0                  /* seconds between looks for what may be packed */
#define LITTLE ((size_t)64 * 1024) /* bytes of raw JSON for which no look begins to pack: its tables take more */
#define FROM ((size_t)256 * 1024)  /* bytes of raw JSON that are worth a dictionary; 3 ms in the loop */
#define IDLE_MOST 10 /* looks in vain until what packing needs is given back; after much was packed, one */
#define TRIM_FROM ((size_t)1024 * 1024) /* bytes */
#define SAMPLES ((size_t)512 * 1024)    /* bytes that the second is learnt from, in 15 ms of a thread */
#define WALK 32                         /* places of the store to take samples from, at a time */
#define GROWTH 4 /* times as many bytes as the first dictionary was learnt from make a second one sensible */
#define DENSE_FROM ((size_t)16 * 1024 * 1024) /* bytes of JSON in a store */
#define WORTH 0.95 /* of the size under the first dictionary: what the second one has to get below */

enum learning {
	LEARN_FIRST,  /* dictionary is NULL */
	LEARN_FILL,   /* until packer_fill, and until there is much more than the first was learnt from */
	LEARN_SAMPLE, /* the store is walked; samples is set */
	LEARN_TRAIN,  /* training is set */
	LEARN_REPACK, /* the store is walked again */
	LEARN_DONE
};

struct packer {
	struct loop *loop;
	const struct store *store;
	struct object_line line;
	struct press *press;           /* NULL until there is a dictionary */
	struct bell *bell;             /* of the press: rings for the job */
	struct dictionary *dictionary; /* what is packed now is packed with this one; NULL at first */
	size_t from;                   /* bytes of the line that the first is learnt from */
	enum learning learning;
	bool filled;
	struct samples *samples;              /* of the second, until it is judged */
	struct dictionary_training *training; /* of the second */
	uint32_t place;                       /* of the walk */
	size_t step, skip;                    /* of SAMPLE: one object in so many is taken; until the next */
	struct loop_job job;                  /* waits while there is something to do at once */
	struct loop_timer timer;
	bool due;     /* all that waits is to be packed */
	int idle;     /* looks in a row that found nothing to do */
	size_t freed; /* bytes of JSON that were packed: where they lay may be free memory now */
	struct buf scratch[2];
};

static void run(void *data);
static void on_timer(void *data);

struct packer *packer_new(struct loop *loop, const struct store *store)
{
	struct packer *packer = alloc_object(&packer_type, sizeof(*packer));
	packer->loop = loop;
	packer->store = store;
	packer->from = FROM;
	object_line_init(&packer->line);
	loop_job_init(&packer->job, run, packer);
	packer->bell = bell_new(loop, &packer->job);
	loop_timer_init(&packer->timer, on_timer, packer);
	buf_init(&packer->scratch[0], 0);
	buf_init(&packer->scratch[1], 0);
	return packer;
}

static void forget_scratch(struct packer *packer)
{
	buf_fini(&packer->scratch[0]);
	buf_fini(&packer->scratch[1]);
}

void packer_free(struct packer *packer)
{
	if (!packer)
		return;
	press_free(packer->press);
	bell_free(packer->bell);
	dictionary_rest(packer->dictionary); /* objects may go on holding it */
	loop_job_cancel(&packer->job);
	loop_timer_stop(packer->loop, &packer->timer);
	object_line_fini(&packer->line);
	if (packer->training)
		dictionary_unref(dictionary_finish(packer->training));
	dictionary_unref(packer->dictionary);
	samples_free(packer->samples);
	forget_scratch(packer);
	alloc_object_free(&packer_type, packer);
}

static void look_later(struct packer *packer)
{
	if (packer->dictionary && !loop_timer_active(&packer->timer))
		loop_timer_start(packer->loop, &packer->timer, PAUSE);
}

/* Where nothing can be learnt from so many, it is tried again with twice as many in the line. */
static void learn_first(struct packer *packer)
{
	struct samples *samples = samples_new(packer->from < SAMPLES ? packer->from : SAMPLES, false);
	struct object *object = object_line_first(&packer->line);
	while (object && samples_add(samples, object_open(object, NULL)))
		object = object_line_next(&packer->line, object);
	packer->dictionary = samples_learn(samples, DICTIONARY_QUICK);
	samples_free(samples);
	packer->learning = packer->dictionary ? LEARN_FILL : LEARN_FIRST;
	if (!packer->dictionary)
		packer->from *= 2;
	look_later(packer);
}

static bool is_pressing(const struct packer *packer)
{
	return packer->press && press_is_busy(packer->press);
}

/* What packing needs goes back, and so does the memory of what was raw, which it would not by itself where later memory
 * lies behind it. */
static void give_back(struct packer *packer)
{
	packer->idle = 0;
	if (!is_pressing(packer)) {
		press_free(packer->press);
		packer->press = NULL;
		dictionary_rest(packer->dictionary);
	}
	forget_scratch(packer);
	if (packer->freed < TRIM_FROM)
		return;
	packer->freed = 0;
	alloc_trim();
}

static void start_sampling(struct packer *packer)
{
	size_t count = store_count(packer->store), length = store_bytes(packer->store) / (count ? count : 1);
	packer->step = 1 + count / samples_room(SAMPLES, length);
	packer->skip = packer->place = 0;
	give_back(packer); /* before the memory that learning and packing anew need */
	packer->samples = samples_new(SAMPLES, true);
	packer->learning = LEARN_SAMPLE;
}

/* At random distances: what repeats itself in the store, such as the replicas of each workload, is met at every place.
 */
static bool sample(void *data, struct object *object)
{
	struct packer *packer = data;
	if (packer->skip) {
		packer->skip--;
		return true;
	}
	packer->skip = (size_t)(backoff_random() * (double)(2 * packer->step - 1));
	return samples_add(packer->samples, object_open(object, &packer->scratch[0]));
}

static bool is_worth_it(struct packer *packer, struct dictionary *second)
{
	double before = (double)samples_packed_size(packer->samples, packer->dictionary, &packer->scratch[1]);
	double after = (double)samples_packed_size(packer->samples, second, &packer->scratch[1]);
	return after < WORTH * before;
}

static bool is_large(const struct packer *packer)
{
	return store_bytes(packer->store) >= DENSE_FROM;
}

static void begin_second(struct packer *packer)
{
	packer->training = samples_train(packer->samples, is_large(packer) ? DICTIONARY_DENSE : DICTIONARY_LIGHT);
	packer->learning = LEARN_TRAIN;
}

static void end_second(struct packer *packer)
{
	struct dictionary *second = dictionary_finish(packer->training);
	packer->training = NULL;
	bool better = second && is_worth_it(packer, second);
	struct dictionary *other = better ? packer->dictionary : second;
	if (better)
		packer->dictionary = second;
	dictionary_rest(other);
	dictionary_unref(other);
	samples_free(packer->samples);
	packer->samples = NULL;
	packer->place = 0;
	packer->learning = better ? LEARN_REPACK : LEARN_DONE;
}

static bool repack(void *data, struct object *object)
{
	struct packer *packer = data;
	if (object_is_packed(object, NULL) || object_is_packed(object, packer->dictionary))
		return true;
	object_pack(object, packer->dictionary, packer->scratch);
	packer->freed += object_length(object);
	return true;
}

/* A part of what is left when all is packed. */
static void learn_more(struct packer *packer)
{
	switch (packer->learning) {
	case LEARN_FILL:
		start_sampling(packer);
		break;
	case LEARN_SAMPLE:
		if (store_walk(packer->store, &packer->place, WALK, sample, packer))
			begin_second(packer);
		break;
	case LEARN_REPACK:
		if (store_walk(packer->store, &packer->place, 1, repack, packer))
			packer->learning = LEARN_DONE;
		break;
	case LEARN_FIRST:
	case LEARN_TRAIN:
	case LEARN_DONE:
		break;
	}
}

static bool is_learning(const struct packer *packer)
{
	return packer->learning == LEARN_SAMPLE || packer->learning == LEARN_REPACK ||
	       (packer->learning == LEARN_FILL && packer->filled &&
		store_bytes(packer->store) >= GROWTH * packer->from);
}

static bool has_due(const struct packer *packer)
{
	return packer->dictionary && packer->line.bytes && (packer->due || packer->line.bytes > PACKER_BUDGET);
}

static void press_on(struct packer *packer)
{
	if (packer->press && press_is_ready(packer->press))
		packer->freed += press_end(packer->press);
	if (is_pressing(packer) || !has_due(packer))
		return;
	if (!packer->press)
		packer->press = press_new(packer->bell);
	press_begin(packer->press, &packer->line, packer->dictionary);
}

static bool is_flooded(const struct packer *packer)
{
	return packer->dictionary && packer->line.bytes > FLOOD;
}

/* What the thread can't keep up with. */
static void help(struct packer *packer)
{
	size_t before = packer->line.bytes;
	double until = clock_now() + TURN;
	while (is_flooded(packer) && clock_now() < until)
		object_pack(object_line_first(&packer->line), packer->dictionary, packer->scratch);
	packer->freed += before - packer->line.bytes;
}

static void run(void *data)
{
	struct packer *packer = data;
	if (packer->learning == LEARN_FIRST && packer->line.bytes >= packer->from)
		learn_first(packer);
	press_on(packer);
	help(packer);
	if (!has_due(packer) && is_learning(packer))
		learn_more(packer);
	if (is_flooded(packer) || (!has_due(packer) && is_learning(packer)))
		loop_post(packer->loop, &packer->job);
}

static bool has_to_begin(const struct packer *packer)
{
	return packer->dictionary ? packer->line.bytes > PACKER_BUDGET : packer->line.bytes >= packer->from;
}

static void on_timer(void *data)
{
	struct packer *packer = data;
	packer->due = packer->line.bytes >= LITTLE;
	/* Before the walk, as what is in the press goes by the dictionary that it had. */
	if (packer->learning == LEARN_TRAIN && !is_pressing(packer) && dictionary_is_ready(packer->training))
		end_second(packer);
	bool busy = has_due(packer) || is_learning(packer) || is_pressing(packer) || packer->learning == LEARN_TRAIN;
	packer->idle = busy ? 0 : packer->idle + 1;
	if (busy)
		loop_post(packer->loop, &packer->job);
	if (packer->freed >= TRIM_FROM ? !busy : packer->idle == IDLE_MOST)
		give_back(packer);
	else
		loop_timer_start(packer->loop, &packer->timer, PAUSE);
}

void packer_add(struct packer *packer, struct object *object)
{
	object_line_add(&packer->line, object);
	if (has_to_begin(packer))
		loop_post(packer->loop, &packer->job);
	look_later(packer);
}

void packer_fill(struct packer *packer)
{
	packer->filled = true;
	look_later(packer);
}
