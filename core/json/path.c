#include "json/lex.h"

#include <string.h>

#include "base/alloc.h"
#include "json/outline.h"

ALLOC_TYPE(path_type, "json_path");

/* Dropping and keeping recurse as deep as the longest path. */
#define MOST_STEPS 512

enum step_kind { STEP_KEY, STEP_INDEX, STEP_ALL };

struct step {
	enum step_kind kind;
	const char *key; /* for STEP_KEY */
	size_t length;   /* of the key; for STEP_INDEX the index */
};

struct json_path {
	char *text;
	struct step *steps;
	size_t count;
	struct buf keys; /* what the steps' keys point into */
};

struct parser {
	const char *start, *at;
	struct json_path *path;
	struct err *err;
};

static int malformed(struct parser *parser, const char *expected)
{
	return err_set(parser->err, "", "path \"%s\": expected %s at character %td", parser->start, expected,
		       parser->at - parser->start + 1);
}

static int add_step(struct parser *parser, struct step step)
{
	struct json_path *path = parser->path;
	if (path->count == MOST_STEPS)
		return malformed(parser, "the end (too many steps)");
	path->steps[path->count++] = step;
	return 0;
}

static int read_bare_key(struct parser *parser)
{
	size_t length = strcspn(parser->at, ".[]'\"*");
	if (!length)
		return malformed(parser, "a key");
	const char *key = parser->path->keys.data + parser->path->keys.length;
	buf_append(&parser->path->keys, parser->at, length);
	parser->at += length;
	if (*parser->at && *parser->at != '.' && *parser->at != '[')
		return malformed(parser, "'.' or '['");
	return add_step(parser, (struct step){STEP_KEY, key, length});
}

/* parser->at is at the opening quote. A backslash takes the next character as it is. */
static int read_quoted_key(struct parser *parser)
{
	char quote = *parser->at++;
	struct buf *keys = &parser->path->keys;
	size_t before = keys->length;
	for (; *parser->at != quote; parser->at++) {
		if (*parser->at == '\\')
			parser->at++;
		if (!*parser->at)
			return malformed(parser, "the closing quote");
		buf_append_char(keys, *parser->at);
	}
	parser->at++;
	return add_step(parser, (struct step){STEP_KEY, keys->data + before, keys->length - before});
}

static int read_index(struct parser *parser)
{
	size_t index = 0, digits = 0;
	for (; *parser->at >= '0' && *parser->at <= '9'; parser->at++, digits++) {
		if (digits == 9)
			return malformed(parser, "a smaller index");
		index = index * 10 + (size_t)(*parser->at - '0');
	}
	if (!digits)
		return malformed(parser, "an index, * or a key in quotes");
	return add_step(parser, (struct step){STEP_INDEX, NULL, index});
}

static int read_bracket(struct parser *parser)
{
	int failed;
	parser->at++;
	if (*parser->at == '\'' || *parser->at == '"') {
		failed = read_quoted_key(parser);
	} else if (*parser->at == '*') {
		parser->at++;
		failed = add_step(parser, (struct step){STEP_ALL, NULL, 0});
	} else {
		failed = read_index(parser);
	}
	if (failed)
		return -1;
	if (*parser->at != ']')
		return malformed(parser, "']'");
	parser->at++;
	return 0;
}

static int read_path(struct parser *parser)
{
	int failed = *parser->at == '[' ? read_bracket(parser) : read_bare_key(parser);
	while (!failed && *parser->at) {
		if (*parser->at == '[') {
			failed = read_bracket(parser);
		} else if (*parser->at == '.') {
			parser->at++;
			failed = read_bare_key(parser);
		} else {
			failed = malformed(parser, "'.' or '['");
		}
	}
	return failed;
}

struct json_path *json_path_new(const char *text, struct err *err)
{
	size_t length = strlen(text);
	struct json_path *path = alloc_object(&path_type, sizeof(*path));
	path->text = alloc_string(text);
	/* Each step takes a character at least, and keys are never longer than the text: neither moves while it grows.
	 */
	path->steps = alloc_zero((length < MOST_STEPS ? length + 1 : MOST_STEPS) * sizeof(*path->steps));
	buf_init(&path->keys, 0);
	buf_reserve(&path->keys, length);
	struct parser parser = {text, text, path, err};
	if (read_path(&parser)) {
		json_path_free(path);
		return NULL;
	}
	return path;
}

void json_path_free(struct json_path *path)
{
	if (!path)
		return;
	alloc_free(path->text);
	alloc_free(path->steps);
	buf_fini(&path->keys);
	alloc_object_free(&path_type, path);
}

const char *json_path_text(const struct json_path *path)
{
	return path->text;
}

bool json_path_is_keys(const struct json_path *path)
{
	for (size_t i = 0; i < path->count; i++)
		if (path->steps[i].kind != STEP_KEY)
			return false;
	return true;
}

const char *json_path_key(const struct json_path *path, size_t place, size_t *length)
{
	if (place >= path->count)
		return NULL;
	*length = path->steps[place].length;
	return path->steps[place].key;
}

static struct json_slice element(struct json_slice array, size_t index)
{
	if (json_type(array) == JSON_ARRAY)
		for (struct json_iter iter = json_iterate(array); json_next(&iter); index--)
			if (!index)
				return iter.value;
	return (struct json_slice){NULL, 0};
}

struct visit {
	bool (*fn)(struct visit *visit, struct json_slice value); /* true stops */
	struct json_slice found;
	void (*on_value)(void *data, struct json_slice value);
	void *data;
};

/* Calls visit for each value at the steps from `from` on. True when visit stopped it. Recursion goes as deep as there
 * are [*] in the path. */
static bool walk(struct json_slice value, const struct json_path *path, size_t from, struct visit *visit)
{
	for (size_t i = from; i < path->count && value.data; i++) {
		const struct step *step = &path->steps[i];
		if (step->kind == STEP_KEY) {
			value = lex_member(value, step->key, step->length);
		} else if (step->kind == STEP_INDEX) {
			value = element(value, step->length);
		} else {
			if (json_type(value) == JSON_ARRAY)
				for (struct json_iter iter = json_iterate(value); json_next(&iter);)
					if (walk(iter.value, path, i + 1, visit))
						return true;
			return false;
		}
	}
	return value.data && visit->fn(visit, value);
}

static bool take_first(struct visit *visit, struct json_slice value)
{
	visit->found = value;
	return true;
}

static bool pass_on(struct visit *visit, struct json_slice value)
{
	visit->on_value(visit->data, value);
	return false;
}

struct json_slice json_find(struct json_slice object, const struct json_path *path)
{
	struct visit visit = {.fn = take_first};
	walk(object, path, 0, &visit);
	return visit.found;
}

void json_find_all(struct json_slice object, const struct json_path *path,
		   void (*on_value)(void *data, struct json_slice value), void *data)
{
	struct visit visit = {.fn = pass_on, .on_value = on_value, .data = data};
	walk(object, path, 0, &visit);
}

/* Dropping and keeping: one walk, in which the paths that a member lies on are a range, as they are sorted. */
struct sieve {
	const struct json_path **paths;
	struct buf *out;
	bool keep; /* else drop */
};

static int compare_steps(const struct step *a, const struct step *b)
{
	size_t shorter = a->length < b->length ? a->length : b->length;
	int order = shorter ? memcmp(a->key, b->key, shorter) : 0;
	return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* A path stands before those that it is the beginning of. */
static int compare_paths(const struct json_path *a, const struct json_path *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		int order = compare_steps(&a->steps[i], &b->steps[i]);
		if (order)
			return order;
	}
	return (a->count > b->count) - (a->count < b->count);
}

static void insert_sorted(const struct json_path **paths, size_t count, const struct json_path *path)
{
	size_t place = count;
	for (; place && compare_paths(paths[place - 1], path) > 0; place--)
		paths[place] = paths[place - 1];
	paths[place] = path;
}

enum verdict { LEAVE_OUT, COPY, DESCEND };

struct range {
	size_t low, high;
};

/* Those paths of range whose step at level is key. */
static struct range narrow(const struct sieve *sieve, struct range range, size_t level, struct json_slice key)
{
	const struct step *first = NULL;
	struct range found = {0, 0};
	for (size_t i = range.low; i < range.high; i++) {
		const struct step *step = &sieve->paths[i]->steps[level];
		if (!first) {
			if (!lex_string_is(key, step->key, step->length))
				continue;
			first = step;
			found.low = i;
		} else if (compare_steps(first, step)) {
			break;
		}
		found.high = i + 1;
	}
	return found;
}

static enum verdict judge(const struct sieve *sieve, struct range range, size_t level, struct json_slice value)
{
	if (range.low == range.high)
		return sieve->keep ? LEAVE_OUT : COPY;
	if (sieve->paths[range.low]->count == level + 1)
		return sieve->keep ? COPY : LEAVE_OUT;
	if (json_type(value) == JSON_OBJECT)
		return DESCEND;
	return sieve->keep ? LEAVE_OUT : COPY;
}

/* Members that stay, side by side in the source: copied as one. */
struct run {
	const char *start, *end;
	bool comma; /* something stands before it */
};

static int flush(struct run *run, struct buf *out)
{
	if (!run->start)
		return 0;
	if (run->comma && buf_append_char(out, ','))
		return -1;
	run->comma = true;
	int failed = buf_append(out, run->start, (size_t)(run->end - run->start));
	run->start = NULL;
	return failed;
}

/* Recursion goes as deep as the longest path, MOST_STEPS at most. */
static int sift(const struct sieve *sieve, const struct outline *object, struct range range, size_t level)
{
	struct run run = {NULL, NULL, false};
	struct outline_iter iter = outline_iterate(object);
	if (buf_append_char(sieve->out, '{'))
		return -1;
	while (outline_next(&iter)) {
		struct json_slice value = iter.value.bytes;
		struct range inner = narrow(sieve, range, level, iter.key);
		enum verdict verdict = judge(sieve, inner, level, value);
		if (verdict != LEAVE_OUT && !run.start)
			run.start = iter.key.data;
		if (verdict == COPY) {
			run.end = value.data + value.length;
		} else if (verdict == DESCEND) {
			run.end = value.data;
			if (flush(&run, sieve->out) || sift(sieve, &iter.value, inner, level + 1))
				return -1;
		} else if (flush(&run, sieve->out)) {
			return -1;
		}
	}
	return flush(&run, sieve->out) || buf_append_char(sieve->out, '}') ? -1 : 0;
}

static int sieve_run(struct sieve *sieve, const struct outline *object, size_t count)
{
	struct buf *out = sieve->out;
	size_t before = out->length;
	int failed = json_type(object->bytes) == JSON_OBJECT
			 ? sift(sieve, object, (struct range){0, count}, 0)
			 : buf_append(out, object->bytes.data, object->bytes.length);
	if (failed && out->data) {
		out->length = before;
		out->data[before] = '\0';
	}
	return failed;
}

/* Most callers give a handful of paths; their places are then on the stack. */
#define FEW 24

static int sieve_paths(const struct outline *object, struct json_path *const *paths, size_t count,
		       const struct json_path *always, size_t always_count, struct buf *out)
{
	const struct json_path *few[FEW];
	size_t all = count + always_count, sorted = 0;
	struct sieve sieve = {few, out, always_count > 0};
	if (all > FEW)
		sieve.paths = alloc_zero(all * sizeof(*sieve.paths));
	for (size_t i = 0; i < count; i++)
		if (json_path_is_keys(paths[i]))
			insert_sorted(sieve.paths, sorted++, paths[i]);
	for (size_t i = 0; i < always_count; i++)
		insert_sorted(sieve.paths, sorted++, &always[i]);
	int failed = sieve_run(&sieve, object, sorted);
	if (all > FEW)
		alloc_free(sieve.paths);
	return failed;
}

int outline_drop(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out)
{
	return sieve_paths(object, paths, count, NULL, 0, out);
}

#define KEY(text)                                                                                                      \
	{                                                                                                              \
		STEP_KEY, text, sizeof(text) - 1                                                                       \
	}

int outline_keep(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out)
{
	static struct step steps[][2] = {
	    {KEY("apiVersion")},
	    {KEY("kind")},
	    {KEY("metadata"), KEY("name")},
	    {KEY("metadata"), KEY("namespace")},
	    {KEY("metadata"), KEY("uid")},
	    {KEY("metadata"), KEY("resourceVersion")},
	};
	static const struct json_path always[] = {
	    {.steps = steps[0], .count = 1}, {.steps = steps[1], .count = 1}, {.steps = steps[2], .count = 2},
	    {.steps = steps[3], .count = 2}, {.steps = steps[4], .count = 2}, {.steps = steps[5], .count = 2},
	};
	return sieve_paths(object, paths, count, always, sizeof(always) / sizeof(always[0]), out);
}
