/* value: JSON bytes to Lua values and back, meaning kept.
 *
 * Objects become plain tables, arrays tables with the array metatable (so that [] stays [] when emptied), null k8s.null
 * (a light userdata NULL, cjson's too), integers beyond 2^53 LuaJIT's int64 cdata. Back: a table with the array
 * metatable or with keys 1..n is an array, any other an object; a fresh empty one is {}. */
#ifndef PERILUNE_SCRIPT_VALUE_H
#define PERILUNE_SCRIPT_VALUE_H

#include <lua.h>

#include "json/scan.h"

/* Tables in each other. The scanner takes more, since objects of the server's may nest as they like: such an object can
 * be cached, and read in part, but not be one Lua value. */
#define VALUE_DEPTH 512

struct json_shape;

/* Once a state, while ffi can still be required. Inside call_plain. */
void value_open(lua_State *L);

/* Pushes one value of validated JSON. Raises for a number that neither int64 nor a double holds, for nesting beyond
 * VALUE_DEPTH, and when memory is out. */
void value_push(lua_State *L, struct json_slice json);
/* The same of those members of an object that shape wants; of what is no object all. NULL: value_push. */
void value_push_part(lua_State *L, struct json_slice json, const struct json_shape *shape);

/* Appends the value at index as JSON to out. 0, or -1 with err naming the place ("spec.args[2]: a function can't be
 * JSON"): a function, thread or other userdata, NaN or infinity, a string that is no UTF-8, mixed or sparse keys,
 * nesting beyond VALUE_DEPTH (a cycle), more than 64 MiB, a full out. Never raises but for memory. */
int value_encode(lua_State *L, int index, struct buf *out, struct err *err);

/* Sets the array metatable on the table at index; the object metatable (an empty array-like table is then {}). */
void value_mark_array(lua_State *L, int index);
void value_mark_object(lua_State *L, int index);

/* Tables with the metatable at index are written as the text that its __tostring gives, which never fails. One
 * metatable a state. Inside call_plain. */
void value_write_as_text(lua_State *L, int index);

#endif
