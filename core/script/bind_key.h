/* bind_key: a reference of a script's as the key of an object of an informer. */
#ifndef PERILUNE_SCRIPT_BIND_KEY_H
#define PERILUNE_SCRIPT_BIND_KEY_H

#include "script/bind.h"

/* Whether the value at index (positive) names an object: a table with a name, or with metadata. */
bool bind_key_is_reference(lua_State *L, int index);

/* A text at the reference's own field or in its metadata, kept on the stack; NULL when there is none. */
const char *bind_key_push_field(lua_State *L, int index, const char *name);

/* Appends the key of the table at index (positive), which names an object of primary's kind: its namespace counts where
 * that kind has one, else the client's default does. May raise. -1 with err. */
int bind_key_of(lua_State *L, int index, const struct informer *primary, struct buf *out, struct err *err);

#endif
