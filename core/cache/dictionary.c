#include "cache/dictionary.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>
#define ZDICT_STATIC_LINKING_ONLY
#include <zdict.h>

#include "base/alloc.h"
#include "base/slab.h"
#include "base/thread.h"

ALLOC_TYPE(dictionary_type, "dictionary");

#define USUAL 4096 /* bytes of an object, by which zstd chooses the size of its tables */

struct dictionary {
	unsigned count;
	enum dictionary_kind kind;
	ZSTD_CDict *packing; /* NULL while it rests */
	ZSTD_DDict *opening;
	struct slab slab;
	size_t length;
	char bytes[]; /* both of them refer to these */
};

struct dictionary_worker {
	ZSTD_CCtx *context;
};

/* Its thread writes to the dictionary's bytes and length, and ready; all else is written before it starts. */
struct dictionary_training {
	pthread_t thread;
	bool threaded;
	struct dictionary *dictionary;
	const char *samples;
	const size_t *lengths;
	size_t count;
	atomic_bool ready;
};

/* Measured with Pods of 5.6 KB, of which much is alike, and of which a third is random:
 *
 *     QUICK   13.2 us  1,065 bytes    18.1 us  2,050 bytes
 *     LIGHT   18.9       980          30.9     2,000
 *
 * With the shorter matches that zstd would take, both are 3 % larger; with its own choice not to compress what nothing
 * is like, once there is a step, QUICK ones are a quarter larger. DENSE takes a little longer than LIGHT, and a seventh
 * less. Tables for packing take 140 and 780 KB, and 0.1 and 1.1 ms to fill. */
static const struct {
	size_t size;                        /* of the dictionary */
	int level;                          /* zstd's */
	unsigned min_match, hash_log, step; /* zstd's, step being its targetLength; 0: its own choice */
} kinds[] = {[DICTIONARY_QUICK] = {32 * 1024, 1, 7, 15, 4},
	     [DICTIONARY_LIGHT] = {32 * 1024, 1, 7, 15, 0},
	     [DICTIONARY_DENSE] = {256 * 1024, 3, 6, 0, 0}};

/* One of each serves all dictionaries, since only the loop's thread packs and opens: as long as one is awake, and as
 * one lives. */
static ZSTD_CCtx *packer;
static ZSTD_DCtx *opener;
static unsigned awake, live;

static void *or_abort(void *made)
{
	if (made)
		return made;
	fprintf(stderr, "perilune: out of memory (zstd)\n");
	abort();
}

/* What zstd can only refuse when it is called wrongly. */
static size_t or_die(size_t result)
{
	if (!ZSTD_isError(result))
		return result;
	fprintf(stderr, "perilune: zstd: %s\n", ZSTD_getErrorName(result));
	abort();
}

static void begin(void)
{
	if (live++)
		return;
	opener = or_abort(ZSTD_createDCtx());
	or_die(ZSTD_DCtx_setParameter(opener, ZSTD_d_format, ZSTD_f_zstd1_magicless));
}

static void end(void)
{
	if (!--live)
		ZSTD_freeDCtx(opener);
}

/* Fixed parameters: zstd's own search for the best ones takes a hundred times as long, for 2 % of size. Touches nothing
 * but the dictionary, whose length stays 0 where there is nothing to learn. */
static void learn(struct dictionary *dictionary, const char *samples, const size_t *lengths, size_t count)
{
	ZDICT_fastCover_params_t params = {.k = 1024, .d = 8, .f = 16, .accel = 1};
	params.zParams.compressionLevel = kinds[dictionary->kind].level;
	size_t length = ZDICT_trainFromBuffer_fastCover(dictionary->bytes, kinds[dictionary->kind].size, samples,
							lengths, (unsigned)count, params);
	if (ZSTD_getErrorCode(length) == ZSTD_error_memory_allocation)
		or_die(length);
	if (!ZDICT_isError(length))
		dictionary->length = length;
}

static struct dictionary *make(enum dictionary_kind kind)
{
	struct dictionary *dictionary = alloc_object(&dictionary_type, sizeof(*dictionary) + kinds[kind].size);
	dictionary->count = 1;
	dictionary->kind = kind;
	slab_init(&dictionary->slab);
	return dictionary;
}

/* What has been learnt can be used from now on. */
static struct dictionary *complete(struct dictionary *dictionary)
{
	if (!dictionary->length) {
		alloc_object_free(&dictionary_type, dictionary);
		return NULL;
	}
	begin();
	dictionary->opening = or_abort(ZSTD_createDDict_byReference(dictionary->bytes, dictionary->length));
	return dictionary;
}

struct dictionary *dictionary_new(enum dictionary_kind kind, const char *samples, const size_t *lengths, size_t count)
{
	struct dictionary *dictionary = make(kind);
	learn(dictionary, samples, lengths, count);
	return complete(dictionary);
}

static void train(struct dictionary_training *training)
{
	learn(training->dictionary, training->samples, training->lengths, training->count);
	atomic_store(&training->ready, true);
}

static void *run(void *data)
{
	thread_give_way();
	train(data);
	return NULL;
}

struct dictionary_training *dictionary_begin(enum dictionary_kind kind, const char *samples, const size_t *lengths,
					     size_t count)
{
	struct dictionary_training *training = alloc_zero(sizeof(*training));
	training->dictionary = make(kind);
	training->samples = samples;
	training->lengths = lengths;
	training->count = count;
	training->threaded = thread_start(&training->thread, run, training);
	if (!training->threaded)
		train(training);
	return training;
}

bool dictionary_is_ready(const struct dictionary_training *training)
{
	return atomic_load(&training->ready);
}

struct dictionary *dictionary_finish(struct dictionary_training *training)
{
	if (training->threaded)
		pthread_join(training->thread, NULL);
	struct dictionary *dictionary = complete(training->dictionary);
	alloc_free(training);
	return dictionary;
}

struct dictionary *dictionary_ref(struct dictionary *dictionary)
{
	dictionary->count++;
	return dictionary;
}

void dictionary_rest(struct dictionary *dictionary)
{
	if (!dictionary || !dictionary->packing)
		return;
	ZSTD_freeCDict(dictionary->packing);
	dictionary->packing = NULL;
	slab_trim(&dictionary->slab);
	if (!--awake)
		ZSTD_freeCCtx(packer);
}

void dictionary_unref(struct dictionary *dictionary)
{
	if (!dictionary || --dictionary->count)
		return;
	dictionary_rest(dictionary);
	ZSTD_freeDDict(dictionary->opening);
	alloc_object_free(&dictionary_type, dictionary);
	end();
}

/* Frames without magic number, length and dictionary's number: the object's record knows all three. */
static ZSTD_CCtx *new_context(void)
{
	ZSTD_CCtx *context = or_abort(ZSTD_createCCtx());
	or_die(ZSTD_CCtx_setParameter(context, ZSTD_c_format, ZSTD_f_zstd1_magicless));
	or_die(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0));
	or_die(ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0));
	or_die(ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, ZSTD_ps_enable));
	return context;
}

void dictionary_wake(struct dictionary *dictionary)
{
	if (dictionary->packing)
		return;
	if (!awake++)
		packer = new_context();
	ZSTD_compressionParameters params = ZSTD_getCParams(kinds[dictionary->kind].level, USUAL, dictionary->length);
	params.minMatch = kinds[dictionary->kind].min_match;
	if (kinds[dictionary->kind].hash_log)
		params.hashLog = kinds[dictionary->kind].hash_log;
	if (kinds[dictionary->kind].step)
		params.targetLength = kinds[dictionary->kind].step;
	dictionary->packing = or_abort(ZSTD_createCDict_advanced(dictionary->bytes, dictionary->length, ZSTD_dlm_byRef,
								 ZSTD_dct_fullDict, params, ZSTD_defaultCMem));
}

static size_t pack(ZSTD_CCtx *context, const struct dictionary *dictionary, struct json_slice json, char *to)
{
	/* One that did not fit left a frame half done. */
	or_die(ZSTD_CCtx_reset(context, ZSTD_reset_session_only));
	or_die(ZSTD_CCtx_refCDict(context, dictionary->packing));
	size_t length = ZSTD_compress2(context, to, json.length, json.data, json.length);
	if (ZSTD_getErrorCode(length) == ZSTD_error_dstSize_tooSmall)
		return 0;
	return or_die(length) < json.length ? length : 0;
}

int dictionary_pack(struct dictionary *dictionary, struct json_slice json, struct buf *out)
{
	buf_reset(out);
	char *to = buf_reserve(out, json.length);
	if (!to)
		return -1;
	dictionary_wake(dictionary);
	out->length = pack(packer, dictionary, json, to);
	to[out->length] = '\0';
	return out->length ? 0 : -1;
}

struct dictionary_worker *dictionary_worker_new(void)
{
	struct dictionary_worker *worker = alloc_zero(sizeof(*worker));
	worker->context = new_context();
	return worker;
}

void dictionary_worker_free(struct dictionary_worker *worker)
{
	if (worker)
		ZSTD_freeCCtx(worker->context);
	alloc_free(worker);
}

size_t dictionary_worker_pack(struct dictionary_worker *worker, const struct dictionary *dictionary,
			      struct json_slice json, char *to)
{
	return pack(worker->context, dictionary, json, to);
}

void *dictionary_keep(struct dictionary *dictionary, struct json_slice packed)
{
	void *kept = slab_take(&dictionary->slab, packed.length);
	memcpy(kept, packed.data, packed.length);
	return kept;
}

void dictionary_drop(struct dictionary *dictionary, void *packed, size_t length)
{
	slab_give(&dictionary->slab, packed, length);
}

void dictionary_open(const struct dictionary *dictionary, struct json_slice packed, char *to, size_t length)
{
	or_die(ZSTD_DCtx_refDDict(opener, dictionary->opening));
	if (or_die(ZSTD_decompressDCtx(opener, to, length, packed.data, packed.length)) == length)
		return;
	fprintf(stderr, "perilune: a packed object has another length than it had\n");
	abort();
}
