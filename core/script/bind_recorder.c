/* bind_recorder: what lua/perilune/recorder.lua, k8s.event, can't know or do by itself. */
#include <ctype.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cache/factory.h"
#include "cache/object.h"
#include "kube/discovery.h"
#include "script/bind.h"
#include "script/host_private.h"
#include "script/library.h"
#include "script/task.h"

#define MOST_NAME 63      /* of the part of a qualified name behind its slash */
#define MOST_INSTANCE 128 /* bytes of reportingInstance */
#define REPLACEMENT "\xEF\xBF\xBD"

static bool is_inner(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* "perilune/mirror" or "perilune/mirror.CONTROLLER": a qualified name, which has one slash, and letters or digits at
 * both ends. */
static void append_controller(const struct script *script, const struct task *task, struct buf *out)
{
	const char *controller = task ? task_controller(task) : NULL;
	size_t start;
	buf_append_text(out, "perilune/");
	start = out->length;
	buf_append_text(out, script->name);
	if (controller)
		buf_append_format(out, ".%s", controller);
	if (out->length > start + MOST_NAME)
		out->length = start + MOST_NAME;
	for (size_t i = start; i < out->length; i++)
		if (!is_inner(out->data[i]))
			out->data[i] = '-';
	while (out->length > start && !isalnum((unsigned char)out->data[out->length - 1]))
		out->length--;
	if (out->length == start || !isalnum((unsigned char)out->data[start]))
		buf_append_char(out, 'x');
	if (!isalnum((unsigned char)out->data[start]))
		out->data[start] = 'x';
}

/* source() -> reportingController, reportingInstance, whether the running call is the leader's alone. */
static int l_source(lua_State *L)
{
	const struct task *task = state_of(L)->running;
	struct buf *scratch = &state_of(L)->scratch;
	char host[256] = "", instance[MOST_INSTANCE + 1];
	buf_reset(scratch);
	append_controller(script_of(L), task, scratch);
	gethostname(host, sizeof(host) - 1);
	snprintf(instance, sizeof(instance), "perilune-%.100s", host);
	lua_pushlstring(L, scratch->data, scratch->length);
	lua_pushstring(L, instance);
	lua_pushboolean(L, task && task_is_leader(task));
	return 3;
}

/* stamp() -> now as a MicroTime, and hex digits that this process gives once. */
static int l_stamp(lua_State *L)
{
	static unsigned serial;
	char time[40], unique[40];
	double wall = clock_wall();
	unsigned long long microseconds = wall > 0 ? (unsigned long long)(wall * 1e6) : 0;
	lua_pushstring(L, clock_format_micro(wall, time, sizeof(time)));
	snprintf(unique, sizeof(unique), "%016llx", microseconds * 1000 + serial++ % 1000);
	lua_pushstring(L, unique);
	return 2;
}

/* text(string, most): the same as valid UTF-8, and its first `most` bytes at most, without half a character. */
static int l_text(lua_State *L)
{
	size_t left;
	const char *at = luaL_checklstring(L, 1, &left);
	size_t most = (size_t)luaL_checkinteger(L, 2);
	struct buf *scratch = &state_of(L)->scratch;
	buf_reset(scratch);
	while (left) {
		size_t length = utf8_sequence((const unsigned char *)at, left);
		size_t needed = length ? length : strlen(REPLACEMENT);
		if (scratch->length + needed > most)
			break;
		buf_append(scratch, length ? at : REPLACEMENT, needed);
		at += length ? length : 1;
		left -= length ? length : 1;
	}
	lua_pushlstring(L, buf_text(scratch), scratch->length);
	return 1;
}

static bool on_object(void *data, const struct informer *informer, const struct object *object)
{
	(void)informer;
	*(const struct object **)data = object;
	return false;
}

/* cached(apiVersion, kind, namespace, name) -> uid, resourceVersion of that object in any of the caches; else nothing.
 */
static int l_cached(lua_State *L)
{
	struct host *host = state_of(L)->host;
	struct cluster *cluster = host_cluster(host);
	const char *api_version = luaL_checkstring(L, 1), *kind = luaL_checkstring(L, 2);
	const struct resource *resource = cluster ? discovery_known(cluster->discovery, api_version, kind, NULL) : NULL;
	const struct object *object = NULL;
	if (resource)
		pool_each_object(host_pool(host), resource, luaL_optstring(L, 3, ""), luaL_checkstring(L, 4), on_object,
				 &object);
	if (!object)
		return 0;
	char uid[OBJECT_UID_SIZE];
	lua_pushstring(L, object_uid(object, uid));
	lua_pushstring(L, object_version(object));
	return 2;
}

static const luaL_Reg core[] = {
    {"source", l_source}, {"stamp", l_stamp}, {"text", l_text}, {"cached", l_cached}, {NULL, NULL}};

/* recorder.lua gets (k8s, core, the client's core) and adds its function to k8s. */
void bind_recorder_open(lua_State *L)
{
	lua_pushvalue(L, -1);
	lua_newtable(L);
	luaL_register(L, NULL, core);
	bind_client_push_core(L);
	library_run(L, "perilune.recorder", 3);
}
