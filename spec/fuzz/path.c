/* Head: paths, a space between two. Body: an object. What is found, dropped and kept is what a plain walk over the
 * members finds, drops and keeps, and what a projection makes of an object is an object. */
#include <string.h>

#include "base/alloc.h"
#include "cache/projection.h"
#include "support/fuzz.h"

#define MOST_PATHS 32

struct paths {
	char *texts[MOST_PATHS];
	struct json_path *paths[MOST_PATHS];
	size_t count;
};

static void read_paths(struct paths *paths, char *head)
{
	char *rest = head;
	for (char *text; paths->count < MOST_PATHS && (text = strtok_r(NULL, " ", &rest));) {
		struct json_path *path = json_path_new(text, NULL);
		if (!path)
			continue;
		FUZZ_CHECK(!strcmp(json_path_text(path), text));
		paths->texts[paths->count] = text;
		paths->paths[paths->count++] = path;
	}
}

/* Keys joined by dots and nothing else. */
static bool is_bare(const char *path)
{
	return !strpbrk(path, "[]'\"*");
}

static struct json_slice find_plainly(struct json_slice value, const char *path)
{
	while (value.data) {
		size_t length = strcspn(path, ".");
		char *key = alloc_text(path, length);
		value = json_get(value, key);
		alloc_free(key);
		if (!path[length])
			break;
		path += length + 1;
	}
	return value;
}

struct found {
	struct json_slice first;
	size_t count;
};

static void on_value(void *data, struct json_slice value)
{
	struct found *found = data;
	FUZZ_CHECK(!json_validate(value.data, value.length, NULL));
	if (!found->count++)
		found->first = value;
}

static void check_find(struct json_slice object, const char *text, const struct json_path *path)
{
	struct found found = {.count = 0};
	struct json_slice value = json_find(object, path);
	json_find_all(object, path, on_value, &found);
	FUZZ_CHECK(found.first.data == value.data && found.first.length == value.length);
	FUZZ_CHECK(found.count <= 1 || !json_path_is_keys(path));
	if (is_bare(text))
		FUZZ_CHECK(find_plainly(object, text).data == value.data);
}

enum place { OFF, ON, ABOVE };

/* Where a member stands to the paths. */
static enum place place_of(const char *member, char *const *paths, size_t count)
{
	size_t length = strlen(member);
	enum place place = OFF;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(paths[i], member))
			return ON;
		if (!strncmp(paths[i], member, length) && paths[i][length] == '.')
			place = ABOVE;
	}
	return place;
}

struct sieve {
	char **paths;
	size_t count;
	bool keep;
	struct buf out;
};

static void sift_plainly(struct sieve *sieve, struct json_slice object, const char *parents)
{
	const char *comma = "";
	buf_append_char(&sieve->out, '{');
	for (struct json_iter iter = json_iterate(object); json_next(&iter);) {
		char *key = json_string_copy(iter.key), *member = alloc_format("%s%s", parents, key);
		/* A key with a dot or a NUL is no part of a bare path. */
		bool bare = !strchr(key, '.') && json_string_equals(iter.key, key);
		enum place place = bare ? place_of(member, sieve->paths, sieve->count) : OFF;
		bool inside = place == ABOVE && json_type(iter.value) == JSON_OBJECT;
		if (inside || (place == ON) == sieve->keep) {
			buf_append_format(&sieve->out, "%s%.*s:", comma, (int)iter.key.length, iter.key.data);
			comma = ",";
			char *here = alloc_format("%s.", member);
			if (inside)
				sift_plainly(sieve, iter.value, here);
			else
				buf_append(&sieve->out, iter.value.data, iter.value.length);
			alloc_free(here);
		}
		alloc_free(member);
		alloc_free(key);
	}
	buf_append_char(&sieve->out, '}');
}

static struct json_slice slice_of(const struct buf *buf)
{
	FUZZ_CHECK(!json_validate(buf->data, buf->length, NULL));
	return (struct json_slice){buf->data, buf->length};
}

static void check_sieve(struct json_slice object, struct paths *paths, bool keep)
{
	static const char *const always[] = {"apiVersion",         "kind",         "metadata.name",
					     "metadata.namespace", "metadata.uid", "metadata.resourceVersion"};
	int (*sieve)(const struct outline *, struct json_path *const *, size_t, struct buf *) =
	    keep ? outline_keep : outline_drop;
	struct outline whole = outline_of(object);
	struct buf out, again;
	buf_init(&out, 0);
	buf_init(&again, 0);
	FUZZ_CHECK(!sieve(&whole, paths->paths, paths->count, &out));
	struct outline sieved = outline_of(slice_of(&out));
	FUZZ_CHECK(!sieve(&sieved, paths->paths, paths->count, &again));
	FUZZ_CHECK(fuzz_same(slice_of(&out), slice_of(&again)));
	for (size_t i = 0; i < paths->count && !keep; i++)
		FUZZ_CHECK(!json_path_is_keys(paths->paths[i]) || !json_find(slice_of(&out), paths->paths[i]).data);

	char *texts[MOST_PATHS + sizeof(always) / sizeof(*always)];
	struct sieve plain = {.paths = texts, .keep = keep};
	for (size_t i = 0; i < paths->count; i++)
		if (is_bare(paths->texts[i]))
			texts[plain.count++] = paths->texts[i];
		else if (json_path_is_keys(paths->paths[i]))
			goto done; /* the plain walk knows no quotes */
	for (size_t i = 0; keep && i < sizeof(always) / sizeof(*always); i++)
		texts[plain.count++] = (char *)always[i];
	buf_init(&plain.out, 0);
	sift_plainly(&plain, object, "");
	FUZZ_CHECK(fuzz_same(slice_of(&plain.out), slice_of(&out)));
	buf_fini(&plain.out);
done:
	buf_fini(&out);
	buf_fini(&again);
}

static void check_projection(struct json_slice object, const struct paths *paths, bool keep)
{
	struct projection projection;
	struct err err;
	const char *const *texts = (const char *const *)paths->texts;
	struct buf out;
	buf_init(&out, 0);
	struct outline outline = outline_of(object);
	if (!projection_init(&projection, keep ? NULL : texts, keep ? 0 : paths->count, keep ? texts : NULL,
			     keep ? paths->count : 0, false, &err) &&
	    !projection_apply(&projection, "v1", "Pod", &outline, &out, &err)) {
		struct json_slice result = slice_of(&out);
		FUZZ_CHECK(json_string_equals(json_get(result, "kind"), "Pod"));
		FUZZ_CHECK(json_string_equals(json_get(result, "apiVersion"), "v1"));
	}
	projection_fini(&projection);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	struct paths paths = {.count = 0};
	read_paths(&paths, input.head);
	struct json_slice object = json_trim(input.body.data, input.body.length);
	bool valid = json_validate(object.data, object.length, NULL) == 0;
	for (size_t i = 0; i < paths.count && valid; i++)
		check_find(object, paths.texts[i], paths.paths[i]);
	if (valid && json_type(object) == JSON_OBJECT)
		for (int keep = 0; keep < 2; keep++) {
			check_sieve(object, &paths, keep);
			check_projection(object, &paths, keep);
		}
	for (size_t i = 0; i < paths.count; i++)
		json_path_free(paths.paths[i]);
	fuzz_input_free(&input);
	return 0;
}
