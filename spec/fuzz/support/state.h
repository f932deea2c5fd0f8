/* state: the Lua state of a target: one for all inputs, since opening the libraries takes a thousand times as long as
 * an input does. */
#ifndef PERILUNE_FUZZ_STATE_H
#define PERILUNE_FUZZ_STATE_H

#include "script/state.h"

/* Made by the first call, with these options; kept to the end. */
struct state *fuzz_state(const struct state_options *options);

#endif
