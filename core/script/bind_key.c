#include "script/bind_key.h"

#include <string.h>

#include "cache/informer.h"
#include "script/host_private.h"
#include "work/controller.h"

bool bind_key_is_reference(lua_State *L, int index)
{
	if (!lua_istable(L, index))
		return false;
	lua_getfield(L, index, "name");
	lua_getfield(L, index, "metadata");
	bool is = !lua_isnil(L, -2) || lua_istable(L, -1);
	lua_pop(L, 2);
	return is;
}

const char *bind_key_push_field(lua_State *L, int index, const char *name)
{
	lua_getfield(L, index, name);
	if (lua_isnil(L, -1)) {
		lua_getfield(L, index, "metadata");
		if (lua_istable(L, -1))
			lua_getfield(L, -1, name);
	}
	return bind_text(L, -1, name);
}

/* What may stand in a key. The rest is the server's to judge: no object has such a name. */
static int check_name(const char *text, const char *what, struct err *err)
{
	size_t length = strlen(text);
	if (length == 0 || length > WORK_NAME_MAX || strchr(text, '/'))
		return err_set(err, "", "a reference's %s has 1 to %d characters and no slash", what, WORK_NAME_MAX);
	return 0;
}

static const char *default_namespace(lua_State *L, const struct informer *primary)
{
	if (informer_namespace_count(primary) == 1)
		return informer_namespace(primary, 0);
	return host_get_options(state_of(L)->host)->namespace;
}

/* Before the kind is looked up only the reference itself can tell. */
static bool is_namespaced(const struct informer *primary, const char *namespace)
{
	const struct resource *resource = informer_resource(primary);
	return resource ? resource->namespaced : namespace != NULL;
}

int bind_key_of(lua_State *L, int index, const struct informer *primary, struct buf *out, struct err *err)
{
	const char *name = bind_key_push_field(L, index, "name"),
		   *namespace = bind_key_push_field(L, index, "namespace");
	if (!name)
		return err_set(err, "", "a reference needs a name");
	if (check_name(name, "name", err) < 0)
		return -1;
	if (is_namespaced(primary, namespace)) {
		namespace = namespace ? namespace : default_namespace(L, primary);
		if (!namespace)
			return err_set(err, "", "%s is namespaced: the reference of %s needs a namespace",
				       informer_kind(primary), name);
		if (check_name(namespace, "namespace", err) < 0)
			return -1;
		buf_append_format(out, "%s/", namespace);
	}
	buf_append_text(out, name);
	return 0;
}
