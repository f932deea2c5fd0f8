#include "ops/control.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "net/local.h"
#include "ops/place.h"

ALLOC_TYPE(control_type, "control");

struct control {
	struct host *host;
	struct local *local;
};

static void answer_status(struct control *control, struct local_call *call)
{
	struct buf text;
	buf_init(&text, 0);
	host_status_json(control->host, &text);
	local_answer(call, true, text.data, text.length);
	buf_fini(&text);
}

/* As one of another version may read it: counts of scripts, and the first error, "" when there is none. */
static void on_reloaded(void *data, const struct host_reload *outcome)
{
	struct buf text;
	buf_init(&text, 0);
	buf_append_format(&text,
			  "{\"replaced\":%u,\"started\":%u,\"stopped\":%u,\"failed\":%u,\"error\":", outcome->replaced,
			  outcome->started, outcome->stopped, outcome->failed);
	buf_append_json_string(&text, outcome->err.message, strlen(outcome->err.message));
	buf_append_text(&text, "}\n");
	local_answer(data, true, text.data, text.length);
	buf_fini(&text);
}

static void answer_reload(struct control *control, struct local_call *call)
{
	host_reload(control->host, true, on_reloaded, call);
}

static const struct request {
	const char *name;
	void (*answer)(struct control *control, struct local_call *call);
} requests[] = {{"status", answer_status}, {"reload", answer_reload}, {NULL, NULL}};

static void on_request(void *data, struct local_call *call, const char *line)
{
	static const char unknown[] = "the host knows no such request; it may be of another version";
	for (const struct request *request = requests; request->name; request++) {
		if (strcmp(request->name, line) != 0)
			continue;
		request->answer(data, call);
		return;
	}
	local_answer(call, false, unknown, sizeof(unknown) - 1);
}

static int open_local(struct control *control, struct loop *loop, const char *path, struct err *err)
{
	struct buf own;
	buf_init(&own, 0);
	if (path || !place_make(&own, err)) {
		struct local_options options = {path ? path : own.data, on_request, control};
		control->local = local_new(loop, &options, err);
		if (control->local)
			log_debug(LOG_FIELDS({"path", options.path}), "control socket");
	}
	buf_fini(&own);
	return control->local ? 0 : -1;
}

struct control *control_new(struct loop *loop, struct host *host, const char *path, struct err *err)
{
	struct control *control = alloc_object(&control_type, sizeof(*control));
	control->host = host;
	if (!open_local(control, loop, path, err))
		return control;
	control_free(control);
	return NULL;
}

void control_free(struct control *control)
{
	if (!control)
		return;
	local_free(control->local);
	alloc_object_free(&control_type, control);
}
