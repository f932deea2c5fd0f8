/* Head: a pattern. Body: what it is sought in, again and again. What matches and what is captured lies in the body, the
 * first match is the first, and what is no pattern is one of a few errors. */
#include <string.h>

#include "script/call.h"
#include "script/match.h"
#include "support/fuzz.h"
#include "support/state.h"

#define MOST_MATCHES 64
#define SECONDS 0.02 /* for an input: patterns can be exponential */

static const char *const errors[] = {"malformed pattern",     "unbalanced pattern",      "missing '[' after '%f'",
				     "pattern too complex",   "too many captures",       "unfinished capture",
				     "invalid capture index", "invalid pattern capture", "stopped: ran longer"};

static void check_captures(const struct match *match)
{
	for (int i = 0; i == 0 || i < match->count; i++) {
		struct match_capture capture = match_capture(match, i);
		FUZZ_CHECK(capture.start >= match->start && capture.start <= match->finish);
		FUZZ_CHECK(capture.length == MATCH_POSITION || capture.length >= 0);
		FUZZ_CHECK(capture.length == MATCH_POSITION || capture.length <= match->finish - capture.start);
	}
}

/* found: NULL where there is none. */
static void check_first(struct match *match, const char *pattern, const char *found)
{
	for (const char *at = match->subject; at <= (found ? found : match->end); at++)
		FUZZ_CHECK(match_at(match, at, pattern) == (at == found));
}

static int seek(lua_State *L, void *data)
{
	const struct fuzz_input *input = data;
	struct match match;
	match_init(&match, L, input->body.data, input->body.length);
	const char *at = match.subject;
	bool found = match_find(&match, at, input->head);
	check_first(&match, input->head, found ? match.start : NULL);
	for (int i = 0; i < MOST_MATCHES && match_find(&match, at, input->head); i++) {
		FUZZ_CHECK(match.start >= at && match.start <= match.finish && match.finish <= match.end);
		check_captures(&match);
		at = match.finish + (match.finish == match.start);
	}
	return 0;
}

static bool is_known(const char *message)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (strstr(message, errors[i]))
			return true;
	return false;
}

static struct state *take_state(void)
{
	return fuzz_state(&(struct state_options){.name = "fuzz", .time_limit = SECONDS});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	struct err err;
	if (call_plain(take_state(), seek, &input, &err) < 0)
		FUZZ_CHECK(is_known(err.message));
	fuzz_input_free(&input);
	return 0;
}
