#include "script/value.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "script/limit.h"
#include "script/state.h"
#include "json/cursor.h"
#include "json/number.h"
#include "json/shape.h"

#define TYPE_CDATA 10 /* LuaJIT's LUA_TCDATA, which its headers leave out */
#define SHOWN_DIGITS 40
#define EXACT 9007199254740992 /* 2^53: up to here a double holds every integer */

/* Tables that stand in several places are written out in each, so that few can be endless. */
#define MOST_ENCODED ((size_t)64 << 20)

/* Registry keys by address. */
static char array_key, object_key, text_key, ffi_key, int64_key, uint64_key, istype_key;

static void push_registry(lua_State *L, void *key)
{
	lua_pushlightuserdata(L, key);
	lua_rawget(L, LUA_REGISTRYINDEX);
}

static void pop_to_registry(lua_State *L, void *key)
{
	lua_pushlightuserdata(L, key);
	lua_insert(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

static void make_metatable(lua_State *L, void *key, const char *name)
{
	lua_createtable(L, 0, 1);
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	pop_to_registry(L, key);
}

static void keep_type(lua_State *L, int ffi, const char *name, void *key)
{
	lua_getfield(L, ffi, "typeof");
	lua_pushstring(L, name);
	lua_call(L, 1, 1);
	pop_to_registry(L, key);
}

void value_open(lua_State *L)
{
	int top = lua_gettop(L);
	make_metatable(L, &array_key, "array");
	make_metatable(L, &object_key, "object");
	lua_getglobal(L, "require");
	lua_pushliteral(L, "ffi");
	lua_call(L, 1, 1);
	keep_type(L, top + 1, "int64_t", &int64_key);
	keep_type(L, top + 1, "uint64_t", &uint64_key);
	lua_getfield(L, top + 1, "istype");
	pop_to_registry(L, &istype_key);
	/* Scripts never see ffi, yet it has to stay alive: cdata use tables that only the library holds. */
	lua_pushvalue(L, top + 1);
	pop_to_registry(L, &ffi_key);
	lua_settop(L, top);
}

void value_mark_array(lua_State *L, int index)
{
	if (index < 0)
		index = lua_gettop(L) + index + 1;
	push_registry(L, &array_key);
	lua_setmetatable(L, index);
}

void value_mark_object(lua_State *L, int index)
{
	if (index < 0)
		index = lua_gettop(L) + index + 1;
	push_registry(L, &object_key);
	lua_setmetatable(L, index);
}

void value_write_as_text(lua_State *L, int index)
{
	lua_pushvalue(L, index);
	pop_to_registry(L, &text_key);
}

/* --- JSON to Lua --- */

static void push_int64(lua_State *L, int64_t value)
{
	push_registry(L, &int64_key);
	lua_call(L, 0, 1);
	memcpy((void *)lua_topointer(L, -1), &value, sizeof(value));
}

static void refuse_number(lua_State *L, struct json_slice json)
{
	bool whole = json.length <= SHOWN_DIGITS;
	lua_pushlstring(L, json.data, whole ? json.length : SHOWN_DIGITS);
	luaL_error(L, "JSON: the number %s%s is out of range", lua_tostring(L, -1), whole ? "" : "...");
}

static void push_number(lua_State *L, struct json_slice json)
{
	int64_t integer;
	if (json_integer(json, &integer) == 0) {
		bool negative_zero = integer == 0 && json.data[0] == '-';
		if (negative_zero)
			lua_pushnumber(L, -0.0);
		else if (integer >= -EXACT && integer <= EXACT)
			lua_pushnumber(L, (double)integer);
		else
			push_int64(L, integer);
		return;
	}
	struct buf *text = &state_of(L)->decoding; /* strtod wants a NUL */
	buf_reset(text);
	buf_append(text, json.data, json.length);
	double number = strtod(text->data, NULL);
	if (isinf(number))
		refuse_number(L, json);
	lua_pushnumber(L, number);
}

static void push_string(lua_State *L, struct json_slice string, bool escaped)
{
	if (!escaped) {
		lua_pushlstring(L, string.data + 1, string.length - 2);
		return;
	}
	struct buf *text = &state_of(L)->decoding;
	buf_reset(text);
	json_string_append(string, text);
	lua_pushlstring(L, buf_text(text), text->length);
}

/* One decode: a single way forward through the bytes. */
struct reader {
	lua_State *L;
	struct cursor cursor;
	struct json_slice json; /* all that the cursor goes through */
	int array;              /* where the stack has the metatable of arrays */
};

/* A container that is being read, on the stack: its table, or nil before it is made; above that, what is to go into it.
 * So most tables are made when all is known that they will hold, and never grow. */
struct container {
	int table;
	int most;     /* values above it */
	int elements; /* in the table, of an array */
};

#define MOST_WAITING 128
#define MUCH_STACK 2000 /* LuaJIT gives a C function 8000: from here on each value goes into its table at once */

/* The item of a list that is being read, or else all that is. */
static struct json_slice object_of(const struct reader *reader)
{
	struct json_iter items = json_iterate(json_get(reader->json, "items"));
	const char *at = reader->cursor.at;
	while (json_next(&items))
		if (at >= items.value.data && at < items.value.data + items.value.length)
			return items.value;
	return reader->json;
}

/* Appends "Pod shop/web-1", or "PodList shop/web-1" where an item has no kind of its own, as in lists of the usual
 * kinds. Nothing for what is no object of the API's. */
static void append_name(const struct reader *reader, struct buf *out)
{
	struct json_slice object = object_of(reader);
	struct json_meta meta;
	if (json_meta(object, &meta) < 0 || json_type(meta.name) != JSON_STRING)
		return;
	json_string_append(meta.kind.data ? meta.kind : json_get(reader->json, "kind"), out);
	buf_append_char(out, ' ');
	if (json_string_append(meta.namespace, out) == 0)
		buf_append_char(out, '/');
	json_string_append(meta.name, out);
}

/* Whoever lists a cache gave no name, and has to hear which of all its objects it is. */
static void refuse_depth(const struct reader *reader)
{
	struct buf *name = &state_of(reader->L)->decoding;
	buf_reset(name);
	append_name(reader, name);
	if (!name->length)
		luaL_error(reader->L, "JSON: nested deeper than %d", VALUE_DEPTH);
	luaL_error(reader->L,
		   "%s: nested deeper than %d: `fields`, of a handler or of informer:list, reads a part of it, an "
		   "informer's `drop` leaves a part out of the cache",
		   buf_text(name), VALUE_DEPTH);
}

static struct container begin(struct reader *reader, unsigned depth)
{
	lua_State *L = reader->L;
	if (depth == VALUE_DEPTH)
		refuse_depth(reader);
	limit_check(L);
	luaL_checkstack(L, MOST_WAITING + 8, "JSON nests too deep");
	lua_pushnil(L);
	reader->cursor.at++;
	int table = lua_gettop(L);
	return (struct container){table, table < MUCH_STACK ? MOST_WAITING : 2, 0};
}

static void make_table(lua_State *L, const struct container *container, int elements, int members)
{
	if (!lua_isnil(L, container->table))
		return;
	lua_createtable(L, elements, members);
	lua_replace(L, container->table);
}

/* In the order of the text: of equal keys the last one counts. */
static void file_members(lua_State *L, const struct container *container)
{
	int top = lua_gettop(L);
	make_table(L, container, 0, (top - container->table) / 2);
	for (int at = container->table + 1; at < top; at += 2) {
		lua_pushvalue(L, at);
		lua_pushvalue(L, at + 1);
		lua_rawset(L, container->table);
	}
	lua_settop(L, container->table);
	limit_check(L);
}

static void file_elements(lua_State *L, struct container *container)
{
	int top = lua_gettop(L);
	make_table(L, container, top - container->table, 0);
	for (int at = container->table + 1; at <= top; at++) {
		lua_pushvalue(L, at);
		lua_rawseti(L, container->table, ++container->elements);
	}
	lua_settop(L, container->table);
	limit_check(L);
}

/* shape: what is wanted of the value; NULL: all of it. */
static void read_value(struct reader *reader, const struct json_shape *shape, unsigned depth);

/* Of what is no object nothing can be wanted in part. Moves on to the value. */
static bool is_wanted(struct reader *reader, const struct json_shape *shape)
{
	bool object = cursor_peek(&reader->cursor) == '{';
	return shape && (object || json_shape_is_whole(shape));
}

static bool read_member(struct reader *reader, const struct json_shape *shape, unsigned depth)
{
	bool escaped;
	struct json_slice key = cursor_string(&reader->cursor, &escaped);
	const struct json_shape *inner = shape ? json_shape_member(shape, key) : NULL;
	cursor_take(&reader->cursor, ':');
	bool wanted = !shape || is_wanted(reader, inner);
	if (wanted) {
		push_string(reader->L, key, escaped);
		read_value(reader, inner, depth + 1);
	} else {
		cursor_value(&reader->cursor);
	}
	cursor_take(&reader->cursor, ',');
	return wanted;
}

static void read_object(struct reader *reader, const struct json_shape *shape, unsigned depth)
{
	struct container container = begin(reader, depth);
	if (shape && json_shape_is_whole(shape))
		shape = NULL;
	for (int waiting = 0; cursor_peek(&reader->cursor) == '"';) {
		waiting += read_member(reader, shape, depth) ? 2 : 0;
		if (waiting < container.most)
			continue;
		file_members(reader->L, &container);
		waiting = 0;
	}
	cursor_take(&reader->cursor, '}');
	file_members(reader->L, &container);
}

static void read_array(struct reader *reader, unsigned depth)
{
	struct container container = begin(reader, depth);
	for (int waiting = 0; cursor_peek(&reader->cursor) && !cursor_take(&reader->cursor, ']');) {
		read_value(reader, NULL, depth + 1);
		cursor_take(&reader->cursor, ',');
		if (++waiting < container.most)
			continue;
		file_elements(reader->L, &container);
		waiting = 0;
	}
	file_elements(reader->L, &container);
	lua_pushvalue(reader->L, reader->array);
	lua_setmetatable(reader->L, container.table);
}

static void read_number(struct reader *reader)
{
	double number;
	if (cursor_digits(&reader->cursor, &number))
		lua_pushnumber(reader->L, number);
	else
		push_number(reader->L, cursor_value(&reader->cursor));
}

static void read_string(struct reader *reader)
{
	bool escaped;
	struct json_slice string = cursor_string(&reader->cursor, &escaped);
	push_string(reader->L, string, escaped);
}

static void read_value(struct reader *reader, const struct json_shape *shape, unsigned depth)
{
	lua_State *L = reader->L;
	switch (cursor_peek(&reader->cursor)) {
	case '\0':
		lua_pushnil(L);
		break;
	case 'n':
		cursor_value(&reader->cursor);
		lua_pushlightuserdata(L, NULL);
		break;
	case 't':
	case 'f':
		lua_pushboolean(L, json_bool(cursor_value(&reader->cursor), false));
		break;
	case '"':
		read_string(reader);
		break;
	case '[':
		read_array(reader, depth);
		break;
	case '{':
		read_object(reader, shape, depth);
		break;
	default:
		read_number(reader);
		break;
	}
}

void value_push_part(lua_State *L, struct json_slice json, const struct json_shape *shape)
{
	luaL_checkstack(L, LUA_MINSTACK, NULL);
	push_registry(L, &array_key);
	struct reader reader = {L, {json.data, json.data + json.length}, json, lua_gettop(L)};
	read_value(&reader, shape, 0);
	lua_remove(L, reader.array);
}

void value_push(lua_State *L, struct json_slice json)
{
	value_push_part(L, json, NULL);
}

/* --- Lua to JSON --- */

/* Where we are, from the root: a list on the C stack, printed only for an error. */
struct place {
	const struct place *parent;
	const char *key; /* NULL: index */
	size_t index;
	unsigned depth;
};

static void append_place(const struct place *place, struct buf *out)
{
	if (!place->parent)
		return;
	append_place(place->parent, out);
	if (place->key)
		buf_append_format(out, "%s%s", out->length ? "." : "", place->key);
	else
		buf_append_format(out, "[%zu]", place->index);
}

/* One encode. */
struct writer {
	lua_State *L;
	struct buf *out;
	struct err *err;
	const void *array, *object, *text; /* the metatables of the marks; NULL where there is none */
};

static int refuse(const struct writer *writer, const struct place *place, const char *what)
{
	struct buf path;
	buf_init(&path, 512);
	append_place(place, &path);
	err_set(writer->err, "", "%s%s%s", buf_text(&path), path.length ? ": " : "", what);
	buf_fini(&path);
	return -1;
}

static int appended(const struct writer *writer, const struct place *place, int result)
{
	return result < 0 ? refuse(writer, place, "too large") : 0;
}

static bool is_ascii(const char *text, size_t length)
{
	unsigned char all = 0;
	for (size_t i = 0; i < length; i++)
		all |= (unsigned char)text[i];
	return all < 0x80;
}

static bool is_utf8(const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + length;
	while (at < end) {
		size_t step = utf8_sequence(at, (size_t)(end - at));
		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

static int write_string(struct writer *writer, int index, const struct place *place)
{
	size_t length;
	const char *text = lua_tolstring(writer->L, index, &length);
	if (!is_ascii(text, length) && !is_utf8(text, length))
		return refuse(writer, place, "a string that is no UTF-8 can't be JSON");
	return appended(writer, place, buf_append_json_string(writer->out, text, length));
}

static int write_number(struct writer *writer, double number, const struct place *place)
{
	char text[NUMBER_SIZE];
	size_t length = number_format(number, text);
	if (length == 0)
		return refuse(writer, place, "NaN and infinity can't be JSON");
	return appended(writer, place, buf_append(writer->out, text, length));
}

static bool is_ctype(lua_State *L, int index, void *key)
{
	push_registry(L, &istype_key);
	push_registry(L, key);
	lua_pushvalue(L, index);
	lua_call(L, 2, 1);
	bool result = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return result;
}

static int write_cdata(struct writer *writer, int index, const struct place *place)
{
	lua_State *L = writer->L;
	if (is_ctype(L, index, &int64_key)) {
		int64_t value;
		memcpy(&value, lua_topointer(L, index), sizeof(value));
		return appended(writer, place, buf_append_format(writer->out, "%lld", (long long)value));
	}
	if (is_ctype(L, index, &uint64_key)) {
		uint64_t value;
		memcpy(&value, lua_topointer(L, index), sizeof(value));
		return appended(writer, place, buf_append_format(writer->out, "%llu", (unsigned long long)value));
	}
	return refuse(writer, place, "cdata other than 64-bit integers can't be JSON");
}

static int write_value(struct writer *writer, int index, const struct place *place);

static int check_array_keys(struct writer *writer, int index, size_t length, const struct place *place)
{
	lua_State *L = writer->L;
	size_t count = 0;
	bool whole = true;
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TNUMBER) {
			lua_pop(L, 2);
			return refuse(writer, place, "a table with both numbers and names as keys can't be JSON");
		}
		double key = lua_tonumber(L, -2);
		whole = whole && key >= 1 && key <= (double)length && key == floor(key);
		count++;
	}
	return whole && count == length ? 0 : refuse(writer, place, "an array with holes can't be JSON (use k8s.null)");
}

/* The element on top of the stack, which is popped. */
static int write_element(struct writer *writer, size_t i, const struct place *place)
{
	struct place here = {place, NULL, i, place->depth + 1};
	int result = i > 1 ? appended(writer, place, buf_append_char(writer->out, ',')) : 0;
	if (result == 0)
		result = write_value(writer, lua_gettop(writer->L), &here);
	lua_pop(writer->L, 1);
	return result;
}

/* The elements behind the first `done`, of an array whose own order is not that of its keys. */
static int write_others(struct writer *writer, int index, size_t done, const struct place *place)
{
	size_t length = lua_objlen(writer->L, index);
	if (check_array_keys(writer, index, length, place) < 0)
		return -1;
	while (done < length) {
		lua_rawgeti(writer->L, index, (int)++done);
		if (write_element(writer, done, place) < 0)
			return -1;
	}
	return 0;
}

/* A table that holds nothing but 1 to n gives them in this order, where it was not filled in another. */
static int write_elements(struct writer *writer, int index, const struct place *place)
{
	lua_State *L = writer->L;
	size_t done = 0;
	for (lua_pushnil(L); lua_next(L, index);) {
		if (lua_type(L, -2) != LUA_TNUMBER || lua_tonumber(L, -2) != (double)(done + 1)) {
			lua_pop(L, 2);
			return write_others(writer, index, done, place);
		}
		if (write_element(writer, ++done, place) < 0) {
			lua_pop(L, 1);
			return -1;
		}
	}
	return 0;
}

static int write_array(struct writer *writer, int index, const struct place *place)
{
	if (appended(writer, place, buf_append_char(writer->out, '[')) < 0 || write_elements(writer, index, place) < 0)
		return -1;
	return appended(writer, place, buf_append_char(writer->out, ']'));
}

static int write_member(struct writer *writer, const struct place *place)
{
	lua_State *L = writer->L;
	int value = lua_gettop(L), key = value - 1;
	if (lua_type(L, key) != LUA_TSTRING)
		return refuse(writer, place, "only strings can be the keys of a JSON object");
	struct place here = {place, lua_tostring(L, key), 0, place->depth + 1};
	if (write_string(writer, key, &here) < 0)
		return -1;
	if (appended(writer, place, buf_append_char(writer->out, ':')) < 0)
		return -1;
	return write_value(writer, value, &here);
}

static int write_object(struct writer *writer, int index, const struct place *place)
{
	lua_State *L = writer->L;
	if (appended(writer, place, buf_append_char(writer->out, '{')) < 0)
		return -1;
	bool first = true;
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), first = false) {
		int result = first ? 0 : appended(writer, place, buf_append_char(writer->out, ','));
		if (result == 0)
			result = write_member(writer, place);
		if (result < 0) {
			lua_pop(L, 2);
			return -1;
		}
	}
	return appended(writer, place, buf_append_char(writer->out, '}'));
}

static int write_text(struct writer *writer, int index, const struct place *place)
{
	lua_State *L = writer->L;
	luaL_callmeta(L, index, "__tostring");
	int result = write_string(writer, lua_gettop(L), place);
	lua_pop(L, 1);
	return result;
}

/* The metatable of the table; NULL for none. */
static const void *mark_of(lua_State *L, int index)
{
	if (!lua_getmetatable(L, index))
		return NULL;
	const void *mark = lua_topointer(L, -1);
	lua_pop(L, 1);
	return mark;
}

static bool has_first(lua_State *L, int index)
{
	lua_rawgeti(L, index, 1);
	bool first = !lua_isnil(L, -1);
	lua_pop(L, 1);
	return first;
}

static int write_table(struct writer *writer, int index, const struct place *place)
{
	luaL_checkstack(writer->L, 8, "JSON nests too deep");
	const void *mark = mark_of(writer->L, index);
	if (mark && mark == writer->text)
		return write_text(writer, index, place);
	if (place->depth >= VALUE_DEPTH)
		return refuse(writer, place, "nested deeper than 512, or a table that contains itself");
	/* An array is marked as one, or is not marked as an object and has something at 1. */
	bool array = mark && (mark == writer->array || mark == writer->object) ? mark == writer->array
									       : has_first(writer->L, index);
	return array ? write_array(writer, index, place) : write_object(writer, index, place);
}

static int write_value(struct writer *writer, int index, const struct place *place)
{
	lua_State *L = writer->L;
	struct buf *out = writer->out;
	if (out->length > MOST_ENCODED)
		return refuse(writer, place, "larger than 64 MiB");
	if (limit_is_over()) /* tables that share tables are exponential when written out */
		return refuse(writer, place, "it takes too long");
	switch (lua_type(L, index)) {
	case LUA_TNIL:
		return appended(writer, place, buf_append_text(out, "null"));
	case LUA_TBOOLEAN:
		return appended(writer, place, buf_append_text(out, lua_toboolean(L, index) ? "true" : "false"));
	case LUA_TNUMBER:
		return write_number(writer, lua_tonumber(L, index), place);
	case LUA_TSTRING:
		return write_string(writer, index, place);
	case LUA_TTABLE:
		return write_table(writer, index, place);
	case LUA_TLIGHTUSERDATA:
		if (!lua_touserdata(L, index))
			return appended(writer, place, buf_append_text(out, "null"));
		return refuse(writer, place, "a userdata can't be JSON");
	case TYPE_CDATA:
		return write_cdata(writer, index, place);
	default:
		return refuse(writer, place,
			      lua_type(L, index) == LUA_TFUNCTION ? "a function can't be JSON"
								  : "a thread or userdata can't be JSON");
	}
}

static const void *mark_at(lua_State *L, void *key)
{
	push_registry(L, key);
	const void *mark = lua_topointer(L, -1);
	lua_pop(L, 1);
	return mark;
}

int value_encode(lua_State *L, int index, struct buf *out, struct err *err)
{
	struct place root = {NULL, NULL, 0, 0};
	luaL_checkstack(L, LUA_MINSTACK, NULL);
	struct writer writer = {.L = L,
				.out = out,
				.err = err,
				.array = mark_at(L, &array_key),
				.object = mark_at(L, &object_key),
				.text = mark_at(L, &text_key)};
	return write_value(&writer, index < 0 ? lua_gettop(L) + index + 1 : index, &root);
}
