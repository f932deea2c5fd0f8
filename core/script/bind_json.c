/* bind_json: k8s.json, k8s.yaml, k8s.null, k8s.array{} and k8s.object{}. */
#include <lauxlib.h>

#include "script/bind.h"
#include "script/limit.h"
#include "script/value.h"
#include "json/yaml.h"

static int fail(lua_State *L, const char *message)
{
	lua_pushnil(L);
	lua_pushstring(L, message);
	return 2;
}

static int encode(lua_State *L, const char *what)
{
	struct buf *out = &state_of(L)->scratch;
	struct err err;
	luaL_checkany(L, 1);
	buf_reset(out);
	if (value_encode(L, 1, out, &err) < 0)
		return bind_misuse(L, "%s: %s", what, err.message);
	lua_pushlstring(L, buf_text(out), out->length);
	return 1;
}

static int l_json_encode(lua_State *L)
{
	return encode(L, "k8s.json.encode");
}

static int push_value(lua_State *L)
{
	value_push(L, *(const struct json_slice *)lua_touserdata(L, 1));
	return 1;
}

/* Pushes the value; or nil and why Lua can't hold it, which is the text's fault and not the script's. */
static int push_decoded(lua_State *L, struct json_slice json)
{
	lua_pushcfunction(L, push_value);
	lua_pushlightuserdata(L, &json);
	int status = lua_pcall(L, 1, 1, 0);
	if (status == 0)
		return 1;
	if (status != LUA_ERRRUN || state_of(L)->killed)
		return lua_error(L);
	lua_pushnil(L);
	lua_insert(L, -2);
	return 2;
}

static int l_json_decode(lua_State *L)
{
	size_t length;
	const char *text = luaL_checklstring(L, 1, &length);
	struct err err;
	if (json_validate(text, length, &err) < 0)
		return fail(L, err.message);
	return push_decoded(L, json_trim(text, length));
}

/* Of all documents together: an alias may stand for much, and a document be one of many. */
#define MOST_YAML ((size_t)64 << 20)

static int append_document(void *data, struct json_slice json, struct err *err)
{
	struct buf *out = data;
	if (out->length + json.length > MOST_YAML)
		return err_set(err, "TooLarge", "the documents are larger than %zu MiB as JSON", MOST_YAML >> 20);
	buf_append_text(out, out->length > 1 ? "," : "");
	return buf_append(out, json.data, json.length);
}

/* All documents as one JSON array in out. */
static int yaml_documents(const char *text, size_t length, struct buf *out, struct err *err)
{
	buf_reset(out);
	buf_append_char(out, '[');
	if (yaml_to_json_until(text, length, append_document, out, limit_is_over, err) < 0)
		return -1;
	return buf_append_char(out, ']');
}

static int decode_yaml(lua_State *L, bool all)
{
	size_t length;
	const char *text = luaL_checklstring(L, 1, &length);
	struct buf *out = &state_of(L)->scratch;
	struct err err;
	if (yaml_documents(text, length, out, &err) < 0)
		return fail(L, err.message);
	int count = push_decoded(L, (struct json_slice){out->data, out->length});
	if (all || count > 1)
		return count;
	if (lua_objlen(L, -1) > 1)
		return fail(L, "more than one document: use k8s.yaml.decode_all");
	lua_rawgeti(L, -1, 1);
	return 1;
}

static int l_yaml_decode(lua_State *L)
{
	return decode_yaml(L, false);
}

static int l_yaml_decode_all(lua_State *L)
{
	return decode_yaml(L, true);
}

static int l_yaml_encode(lua_State *L)
{
	struct buf *out = &state_of(L)->scratch;
	struct err err;
	encode(L, "k8s.yaml.encode");
	size_t length;
	const char *json = lua_tolstring(L, -1, &length);
	buf_reset(out);
	if (yaml_from_json((struct json_slice){json, length}, out, &err) < 0)
		return bind_misuse(L, "k8s.yaml.encode: %s", err.message);
	lua_pushlstring(L, buf_text(out), out->length);
	return 1;
}

static int l_array(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	value_mark_array(L, 1);
	return 1;
}

static int l_object(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	value_mark_object(L, 1);
	return 1;
}

static const luaL_Reg json[] = {{"encode", l_json_encode}, {"decode", l_json_decode}, {NULL, NULL}};
static const luaL_Reg yaml[] = {
    {"encode", l_yaml_encode}, {"decode", l_yaml_decode}, {"decode_all", l_yaml_decode_all}, {NULL, NULL}};
static const luaL_Reg marks[] = {{"array", l_array}, {"object", l_object}, {NULL, NULL}};

void bind_json_open(lua_State *L)
{
	lua_newtable(L);
	luaL_register(L, NULL, json);
	lua_setfield(L, -2, "json");
	lua_newtable(L);
	luaL_register(L, NULL, yaml);
	lua_setfield(L, -2, "yaml");
	luaL_register(L, NULL, marks);
	lua_pushlightuserdata(L, NULL);
	lua_setfield(L, -2, "null");
}
