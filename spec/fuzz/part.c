/* Head: paths, a space between two. Body: an object. The part of it that Lua is given for them means what outline_keep
 * leaves of the object. */
#include <string.h>

#include "script/call.h"
#include "script/value.h"
#include "support/fuzz.h"
#include "support/state.h"
#include "json/shape.h"

#define MOST_PATHS 32

struct wanted {
	struct json_slice object;
	struct json_path *paths[MOST_PATHS];
	size_t count;
	struct json_shape *shape;
	struct buf part;
	struct err err;
};

static void want(struct wanted *wanted, const char *text)
{
	struct json_path *path = json_path_new(text, NULL);
	if (!path)
		return;
	json_shape_add(wanted->shape, path);
	wanted->paths[wanted->count++] = path;
}

static void read_paths(struct wanted *wanted, char *head)
{
	static const char *const always[] = {"apiVersion",         "kind",         "metadata.name",
					     "metadata.namespace", "metadata.uid", "metadata.resourceVersion"};
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		want(wanted, always[i]);
	for (char *text, *rest = head; wanted->count < MOST_PATHS && (text = strtok_r(NULL, " ", &rest));)
		want(wanted, text);
}

static int through_lua(lua_State *L, void *data)
{
	struct wanted *wanted = data;
	value_push_part(L, wanted->object, wanted->shape);
	return value_encode(L, -1, &wanted->part, &wanted->err);
}

static void check_part(struct wanted *wanted)
{
	struct state *state = fuzz_state(&(struct state_options){.name = "fuzz"});
	struct buf kept;
	buf_init(&kept, 0);
	struct outline outline = outline_of(wanted->object);
	FUZZ_CHECK(!outline_keep(&outline, wanted->paths, wanted->count, &kept));
	if (!call_plain(state, through_lua, wanted, &wanted->err))
		FUZZ_CHECK(fuzz_same((struct json_slice){wanted->part.data, wanted->part.length},
				     (struct json_slice){kept.data, kept.length}));
	else
		FUZZ_CHECK(strstr(wanted->err.message, "JSON: the number"));
	buf_fini(&kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	struct wanted wanted = {.object = json_trim(input.body.data, input.body.length)};
	wanted.shape = json_shape_new();
	buf_init(&wanted.part, 0);
	read_paths(&wanted, input.head);
	if (!json_validate(wanted.object.data, wanted.object.length, NULL) && json_type(wanted.object) == JSON_OBJECT)
		check_part(&wanted);
	for (size_t i = 0; i < wanted.count; i++)
		json_path_free(wanted.paths[i]);
	json_shape_free(wanted.shape);
	buf_fini(&wanted.part);
	fuzz_input_free(&input);
	return 0;
}
