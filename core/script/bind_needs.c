/* bind_needs: k8s.needs: the rights that a script declares, kept with it for whoever describes it. */
#include <lauxlib.h>
#include <string.h>

#include "script/bind.h"

#define LONGEST_NEEDS ((size_t)1 << 20)

/* As it grows: a list may name one long text, or one rule, any number of times. */
static void check_length(lua_State *L, const struct buf *rules)
{
	if (script_of(L)->needs.length + rules->length > LONGEST_NEEDS)
		bind_misuse(L, "k8s.needs: a script can't need more than a megabyte of rules");
}

static void append_list(lua_State *L, int rule, const char *name, struct buf *out)
{
	size_t count;
	const char *const *words = bind_strings_option(L, rule, name, &count);
	if (!count)
		bind_misuse(L, "k8s.needs: %s must be a list of strings, and not an empty one", name);
	buf_append_format(out, "\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		buf_append_text(out, i ? "," : "");
		buf_append_json_string(out, words[i], strlen(words[i]));
		check_length(L, out);
	}
	buf_append_text(out, "]");
}

/* Appends the rule on top of the stack as JSON. */
static void read_rule(lua_State *L, struct buf *out)
{
	static const char *const known[] = {"apiGroups", "resources", "verbs", NULL};
	int rule = lua_gettop(L);
	bind_check_options(L, rule, "k8s.needs", known);
	buf_append_text(out, "{");
	for (size_t i = 0; known[i]; i++) {
		buf_append_text(out, i ? "," : "");
		append_list(L, rule, known[i], out);
	}
	buf_append_text(out, "}");
	lua_settop(L, rule);
}

/* needs{ { apiGroups =, resources =, verbs = }, ... }: all of them are checked before one is kept. */
static int l_needs(lua_State *L)
{
	struct buf *needs = &script_of(L)->needs, *rules = &state_of(L)->scratch;
	lua_settop(L, 1);
	if (!lua_istable(L, 1) || !lua_objlen(L, 1))
		return bind_misuse(L, "k8s.needs takes a list of rules, { { apiGroups =, resources =, verbs = } }");
	buf_reset(rules);
	for (size_t i = 1; i <= lua_objlen(L, 1); i++) {
		lua_rawgeti(L, 1, (int)i);
		buf_append_text(rules, rules->length || needs->length ? "," : "");
		read_rule(L, rules);
		lua_pop(L, 1);
	}
	buf_append(needs, rules->data, rules->length);
	return 0;
}

void bind_needs_open(lua_State *L)
{
	lua_pushcfunction(L, l_needs);
	lua_setfield(L, -2, "needs");
}
