/* Head: a letter for each 512 bytes of memory that a second reading may take. Body: JSON. Through Lua and back it means
 * the same, and too little memory is an error and leaves a state that works. */
#include <string.h>

#include "base/alloc.h"
#include "script/call.h"
#include "script/value.h"
#include "support/fuzz.h"
#include "support/state.h"

struct trip {
	struct json_slice json;
	struct buf out;
	struct err err;
};

static int there_and_back(lua_State *L, void *data)
{
	struct trip *trip = data;
	buf_reset(&trip->out);
	value_push(L, trip->json);
	return value_encode(L, -1, &trip->out, &trip->err);
}

static struct state *take_state(void)
{
	return fuzz_state(&(struct state_options){.name = "fuzz"});
}

static void check_trip(const struct trip *trip)
{
	FUZZ_CHECK(fuzz_is_json(trip->out.data, trip->out.length));
	FUZZ_CHECK(fuzz_same(trip->json, (struct json_slice){trip->out.data, trip->out.length}));
}

/* False where Lua holds no such number. */
static bool travel(struct state *state, struct trip *trip)
{
	if (!call_plain(state, there_and_back, trip, &trip->err)) {
		check_trip(trip);
		return true;
	}
	FUZZ_CHECK(strstr(trip->err.message, "JSON: the number"));
	return false;
}

static void travel_in_need(struct state *state, struct trip *trip, size_t memory)
{
	state->memory_limit = state->memory + memory;
	if (!call_plain(state, there_and_back, trip, &trip->err))
		check_trip(trip);
	else
		FUZZ_CHECK(strstr(trip->err.message, "not enough memory"));
	state->memory_limit = 0;
	alloc_free(state->parked);
	state->parked = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	struct trip trip = {.json = json_trim(input.body.data, input.body.length)};
	struct state *state = take_state();
	if (!json_validate(trip.json.data, trip.json.length, NULL)) {
		buf_init(&trip.out, 0);
		if (travel(state, &trip) && *input.head) {
			travel_in_need(state, &trip, strlen(input.head) * 512);
			FUZZ_CHECK(travel(state, &trip));
		}
		buf_fini(&trip.out);
	}
	fuzz_input_free(&input);
	return 0;
}
