/* bind_string: string.find, match, gmatch and gsub of scripts, on a matcher that the time limit stops. They do what
 * LuaJIT's own do. */
#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "script/bind.h"
#include "script/match.h"

/* Bytes of a string that Lua copies, hashes or compares while a step goes by. */
#define COPIED 8

/* Bytes of a subject in which a search may as well be quadratic. */
#define SHORT 256

static bool is_special(char c)
{
	switch (c) {
	case '^':
	case '$':
	case '*':
	case '+':
	case '?':
	case '.':
	case '(':
	case '[':
	case '%':
	case '-':
		return true;
	default:
		return false;
	}
}

static bool is_plain(const char *pattern, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (is_special(pattern[i]))
			return false;
	return true;
}

static bool search(struct match *match, const char *start, const char *pattern)
{
	return *pattern == '^' ? match_at(match, start, pattern + 1) : match_find(match, start, pattern);
}

static void push_capture(lua_State *L, struct match *match, int i)
{
	struct match_capture capture = match_capture(match, i);
	if (capture.length == MATCH_POSITION) {
		lua_pushinteger(L, capture.start - match->subject + 1);
		return;
	}
	match_spend(match, (size_t)capture.length / COPIED);
	lua_pushlstring(L, capture.start, (size_t)capture.length);
}

/* Pushes them, or all that matched where there are none, and returns how many. */
static int push_captures(lua_State *L, struct match *match)
{
	int count = match->count ? match->count : 1;
	luaL_checkstack(L, count, "too many captures");
	for (int i = 0; i < count; i++)
		push_capture(L, match, i);
	return count;
}

/* Where the search begins: the argument at index, counted from 1, or from the end where it is negative. */
static size_t check_start(lua_State *L, int index, size_t length)
{
	ptrdiff_t start = luaL_optint(L, index, 1);
	if (start < 0)
		start += (ptrdiff_t)length;
	else if (start > 0)
		start--;
	if (start < 0)
		start = 0;
	return (size_t)start < length ? (size_t)start : length;
}

static int push_range(lua_State *L, const char *subject, const char *start, const char *end)
{
	lua_pushinteger(L, start - subject + 1);
	lua_pushinteger(L, end - subject);
	return 2;
}

/* memmem is linear whatever the texts are; it prepares for that, which takes longer than a short search. */
static const char *find_text(const char *subject, size_t length, const char *text, size_t sought)
{
	if (length > SHORT || sought == 0)
		return memmem(subject, length, text, sought);
	while (length >= sought) {
		const char *first = memchr(subject, *text, length - sought + 1);
		if (!first || memcmp(first, text, sought) == 0)
			return first;
		length -= (size_t)(first + 1 - subject);
		subject = first + 1;
	}
	return NULL;
}

static int find_plain(lua_State *L, const char *subject, size_t length, size_t start)
{
	size_t sought;
	const char *text = lua_tolstring(L, 2, &sought);
	const char *found = find_text(subject + start, length - start, text, sought);
	if (found)
		return push_range(L, subject, found, found + sought);
	lua_pushnil(L);
	return 1;
}

static int l_find(lua_State *L)
{
	size_t length, pattern_length;
	const char *subject = luaL_checklstring(L, 1, &length), *pattern = luaL_checklstring(L, 2, &pattern_length);
	size_t start = check_start(L, 3, length);
	if (lua_toboolean(L, 4) || is_plain(pattern, pattern_length))
		return find_plain(L, subject, length, start);
	struct match match;
	match_init(&match, L, subject, length);
	if (search(&match, subject + start, pattern))
		return push_range(L, subject, match.start, match.finish) + (match.count ? push_captures(L, &match) : 0);
	lua_pushnil(L);
	return 1;
}

static int l_match(lua_State *L)
{
	size_t length;
	const char *subject = luaL_checklstring(L, 1, &length), *pattern = luaL_checkstring(L, 2);
	size_t start = check_start(L, 3, length);
	struct match match;
	match_init(&match, L, subject, length);
	if (search(&match, subject + start, pattern))
		return push_captures(L, &match);
	lua_pushnil(L);
	return 1;
}

/* Upvalues: the subject, the pattern, and how far it has come. */
static int gmatch_next(lua_State *L)
{
	size_t length, at = (size_t)lua_tointeger(L, lua_upvalueindex(3));
	const char *subject = lua_tolstring(L, lua_upvalueindex(1), &length);
	const char *pattern = lua_tostring(L, lua_upvalueindex(2));
	struct match match;
	match_init(&match, L, subject, length);
	if (at > length || !match_find(&match, subject + at, pattern)) /* a "^" means itself here */
		return 0;
	lua_pushinteger(L, match.finish - subject + (match.finish == match.start));
	lua_replace(L, lua_upvalueindex(3));
	return push_captures(L, &match);
}

static int l_gmatch(lua_State *L)
{
	luaL_checkstring(L, 1);
	luaL_checkstring(L, 2);
	lua_settop(L, 2);
	lua_pushinteger(L, 0);
	lua_pushcclosure(L, gmatch_next, 3);
	return 1;
}

/* Of gsub: its replacement is at 3. */
struct replacing {
	lua_State *L;
	struct match match;
	luaL_Buffer out;
};

/* The text at 3, with "%1" and the like in it. */
static void add_text(struct replacing *replacing)
{
	size_t length;
	const char *text = lua_tolstring(replacing->L, 3, &length), *end = text + length;
	struct match *match = &replacing->match;
	while (text < end) {
		const char *percent = memchr(text, '%', (size_t)(end - text));
		size_t plain = (size_t)((percent ? percent : end) - text);
		luaL_addlstring(&replacing->out, text, plain);
		match_spend(match, plain / COPIED + 1);
		if (!percent)
			return;
		text = percent + 2;
		if (!isdigit((unsigned char)percent[1])) {
			luaL_addchar(&replacing->out, percent[1]); /* a NUL where the text ends with the "%" */
		} else if (percent[1] == '0') {
			luaL_addlstring(&replacing->out, match->start, (size_t)(match->finish - match->start));
		} else {
			push_capture(replacing->L, match, percent[1] - '1');
			luaL_addvalue(&replacing->out);
		}
	}
}

/* What the function or table at 3 has for the match; nil and false leave it as it is. */
static void add_answer(struct replacing *replacing)
{
	lua_State *L = replacing->L;
	struct match *match = &replacing->match;
	if (lua_isfunction(L, 3)) {
		lua_pushvalue(L, 3);
		lua_call(L, push_captures(L, match), 1);
	} else {
		push_capture(L, match, 0);
		lua_gettable(L, 3);
	}
	if (!lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		lua_pushlstring(L, match->start, (size_t)(match->finish - match->start));
	} else if (!lua_isstring(L, -1)) {
		luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
	}
	luaL_addvalue(&replacing->out);
}

/* How often the pattern was replaced; the text is in out then, but for what is behind *rest. */
static int replace(struct replacing *replacing, const char *pattern, int most, const char **rest)
{
	struct match *match = &replacing->match;
	bool anchored = *pattern == '^', is_text = lua_isstring(replacing->L, 3) != 0;
	int count = 0;
	const char *at = match->subject;
	while (count < most && search(match, at, pattern)) {
		luaL_addlstring(&replacing->out, at, (size_t)(match->start - at));
		if (is_text)
			add_text(replacing);
		else
			add_answer(replacing);
		count++;
		at = match->finish;
		if (anchored)
			break;
		if (at > match->start)
			continue;
		if (at == match->end)
			break;
		luaL_addchar(&replacing->out, *at++);
	}
	*rest = at;
	return count;
}

static int l_gsub(lua_State *L)
{
	size_t length;
	const char *subject = luaL_checklstring(L, 1, &length), *pattern = luaL_checkstring(L, 2), *rest;
	int most = luaL_optint(L, 4, (int)length + 1);
	if (!lua_isstring(L, 3) && !lua_istable(L, 3) && !lua_isfunction(L, 3))
		return luaL_argerror(L, 3, "string/function/table expected");
	struct replacing replacing; /* not cleared: its buffer is large */
	replacing.L = L;
	lua_settop(L, 3);
	match_init(&replacing.match, L, subject, length);
	luaL_buffinit(L, &replacing.out);
	int count = replace(&replacing, pattern, most, &rest);
	luaL_addlstring(&replacing.out, rest, (size_t)(subject + length - rest));
	luaL_pushresult(&replacing.out);
	lua_pushinteger(L, count);
	return 2;
}

static const luaL_Reg functions[] = {
    {"find", l_find}, {"match", l_match}, {"gmatch", l_gmatch}, {"gsub", l_gsub}, {NULL, NULL}};

void bind_string_open(lua_State *L)
{
	lua_getglobal(L, "string");
	luaL_register(L, NULL, functions);
	lua_pop(L, 1);
}
