#include <string.h>

#include "fuzz.h"
#include "json/outline.h"

static bool equal(struct json_slice a, struct json_slice b)
{
	return a.data == b.data && a.length == b.length;
}

/* The members by the notes are those of a walk over the bytes. */
static void check_members(const struct outline *outline, unsigned level)
{
	struct outline_iter noted = outline_iterate(outline);
	struct json_iter walked = json_iterate(outline->bytes);
	FUZZ_CHECK(level <= OUTLINE_LEVELS);
	while (json_next(&walked)) {
		FUZZ_CHECK(outline_next(&noted));
		FUZZ_CHECK(equal(noted.key, walked.key) && equal(noted.value.bytes, walked.value));
		if (noted.value.base)
			check_members(&noted.value, level + 1);
	}
	FUZZ_CHECK(!outline_next(&noted));
}

static void check_meta(const struct outline *outline)
{
	struct json_meta noted, walked;
	FUZZ_CHECK(outline_meta(outline, &noted) == json_meta(outline->bytes, &walked));
	FUZZ_CHECK(equal(noted.api_version, walked.api_version) && equal(noted.kind, walked.kind));
	FUZZ_CHECK(equal(noted.metadata, walked.metadata) && equal(noted.name, walked.name));
	FUZZ_CHECK(equal(noted.namespace, walked.namespace) && equal(noted.uid, walked.uid));
	FUZZ_CHECK(equal(noted.resource_version, walked.resource_version) && equal(noted.labels, walked.labels));
	FUZZ_CHECK(equal(noted.generation, walked.generation) && equal(noted.annotations, walked.annotations));
	FUZZ_CHECK(equal(noted.deletion_timestamp, walked.deletion_timestamp));
	FUZZ_CHECK(equal(outline_get(outline, "kind"), json_get(outline->bytes, "kind")));
}

static void check_sieve(const struct outline *outline, bool keep)
{
	static const char *const texts[] = {"metadata.labels", "metadata.managedFields", "kind", "a", "b.c",
					    "object.a"};
	struct json_path *paths[sizeof(texts) / sizeof(*texts)];
	size_t count = sizeof(texts) / sizeof(*texts);
	struct outline bare = outline_of(outline->bytes);
	struct buf noted, walked;
	buf_init(&noted, 0);
	buf_init(&walked, 0);
	for (size_t i = 0; i < count; i++)
		paths[i] = json_path_new(texts[i], NULL);
	FUZZ_CHECK(!(keep ? outline_keep : outline_drop)(outline, paths, count, &noted));
	FUZZ_CHECK(!(keep ? outline_keep : outline_drop)(&bare, paths, count, &walked));
	FUZZ_CHECK(noted.length == walked.length && !memcmp(buf_text(&noted), buf_text(&walked), noted.length));
	for (size_t i = 0; i < count; i++)
		json_path_free(paths[i]);
	buf_fini(&noted);
	buf_fini(&walked);
}

void fuzz_check_outline(const struct outline *outline)
{
	check_members(outline, 1);
	check_meta(outline);
	check_sieve(outline, false);
	check_sieve(outline, true);
}
