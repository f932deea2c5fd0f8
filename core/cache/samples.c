#include "cache/samples.h"

#include "base/alloc.h"

ALLOC_TYPE(samples_type, "samples");

#define LENGTH_MOST ((size_t)16 * 1024) /* bytes of one object */
#define LENGTH_LEAST 64                 /* bytes that one counts for at least, so that lengths have room */
#define EACH 9                          /* one of so many is a test */

/* Texts, one behind the other. */
struct row {
	struct buf texts;
	size_t *lengths;
	size_t count;
	size_t most; /* bytes of all texts */
};

struct samples {
	struct row learnt, tests;
	bool tested;
	size_t added;
};

static void init_row(struct row *row, size_t most)
{
	buf_init(&row->texts, 0);
	row->lengths = alloc_resize(NULL, most / LENGTH_LEAST * sizeof(*row->lengths));
	row->most = most;
}

static void end_row(struct row *row)
{
	buf_fini(&row->texts);
	alloc_free(row->lengths);
}

struct samples *samples_new(size_t most, bool tested)
{
	struct samples *samples = alloc_object(&samples_type, sizeof(*samples));
	init_row(&samples->learnt, most);
	init_row(&samples->tests, tested ? most / (EACH - 1) + LENGTH_MOST : 0);
	samples->tested = tested;
	return samples;
}

void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	end_row(&samples->learnt);
	end_row(&samples->tests);
	alloc_object_free(&samples_type, samples);
}

bool samples_add(struct samples *samples, struct json_slice json)
{
	bool test = samples->tested && samples->added % EACH == EACH - 1;
	struct row *row = test ? &samples->tests : &samples->learnt;
	size_t length = json.length < LENGTH_MOST ? json.length : LENGTH_MOST;
	if (row->texts.length + length > row->most || row->count == row->most / LENGTH_LEAST)
		return false;
	buf_append(&row->texts, json.data, length);
	row->lengths[row->count++] = length;
	samples->added++;
	return true;
}

size_t samples_room(size_t most, size_t length)
{
	size_t counted = length < LENGTH_LEAST ? LENGTH_LEAST : length < LENGTH_MOST ? length : LENGTH_MOST;
	return most / counted * EACH / (EACH - 1);
}

struct dictionary *samples_learn(const struct samples *samples, enum dictionary_kind kind)
{
	const struct row *row = &samples->learnt;
	return dictionary_new(kind, buf_text(&row->texts), row->lengths, row->count);
}

struct dictionary_training *samples_train(const struct samples *samples, enum dictionary_kind kind)
{
	const struct row *row = &samples->learnt;
	return dictionary_begin(kind, buf_text(&row->texts), row->lengths, row->count);
}

size_t samples_packed_size(const struct samples *samples, struct dictionary *dictionary, struct buf *scratch)
{
	const struct row *row = &samples->tests;
	size_t size = 0, at = 0;
	for (size_t i = 0; i < row->count; i++) {
		struct json_slice text = {row->texts.data + at, row->lengths[i]};
		size += dictionary_pack(dictionary, text, scratch) ? text.length : scratch->length;
		at += text.length;
	}
	return size;
}
