#include "work/source.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kube/resource.h"

ALLOC_TYPE(source_type, "source");

struct source {
	struct controller *controller;
	struct source_options options;
	struct listener *listener;
	struct informer *primary; /* counted; NULL but for owners */
	struct loop_job job;
	struct buf open, key; /* scratch */
	struct notification current;
	bool opened;
};

/* --- keys --- */

static void add(struct source *source, const char *key, size_t length, const struct object *object)
{
	const struct notification *current = &source->current;
	enum work_priority priority = current->initial || current->resync ? WORK_LOW : WORK_HIGH;
	const char *version = current->initial || current->resync ? NULL : object_version(object);
	controller_add(source->controller, key, length, priority, version);
}

void source_add(struct source *source, const char *key, size_t length)
{
	add(source, key, length, source->current.object);
}

/* The group of an ownerReference's apiVersion, which is compared alone: the version may be another one. */
static bool is_group(struct json_slice api_version, const char *wanted)
{
	const char *text = api_version.data + 1;
	size_t length = api_version.length - 2, group = strlen(wanted);
	const char *slash = memchr(text, '/', length);
	if (!slash)
		return group == 0;
	return (size_t)(slash - text) == group && !memcmp(text, wanted, group);
}

static bool is_reference(const struct source *source, struct json_slice reference, const struct resource *resource)
{
	struct json_slice api_version = json_get(reference, "apiVersion");
	if (json_type(api_version) != JSON_STRING || !is_group(api_version, resource->group))
		return false;
	if (!json_string_equals(json_get(reference, "kind"), resource->kind))
		return false;
	return source->options.any_owner || json_bool(json_get(reference, "controller"), false);
}

/* A child of an earlier owner of the same name is no news for the present one, except that its name is free again. */
static bool is_of_another(const struct source *source, struct json_slice reference)
{
	char uid[OBJECT_UID_SIZE];
	const struct object *owner =
	    store_get_key(informer_store(source->primary), source->key.data, source->key.length);
	return owner && source->current.type != NOTIFY_DELETE &&
	       !json_string_equals(json_get(reference, "uid"), object_uid(owner, uid));
}

/* Whoever may make a child writes what he likes there, and the API server takes it: a slash would make a key of another
 * namespace. */
static int append_name(struct json_slice reference, struct buf *key)
{
	size_t start = key->length;
	if (json_string_append(json_get(reference, "name"), key) < 0)
		return -1;
	const char *name = buf_text(key) + start;
	size_t length = key->length - start;
	return length && length <= WORK_NAME_MAX && strcspn(name, "/") == length ? 0 : -1;
}

static void append_namespace(const struct object *object, struct buf *key)
{
	size_t length;
	const char *namespace = object_namespace(object, &length);
	buf_append(key, namespace, length);
	buf_append_char(key, '/');
}

static void add_owner(struct source *source, const struct object *object, struct json_slice reference)
{
	const struct resource *resource = informer_resource(source->primary);
	if (!is_reference(source, reference, resource))
		return;
	buf_reset(&source->key);
	if (resource->namespaced)
		append_namespace(object, &source->key);
	if (append_name(reference, &source->key) < 0 || is_of_another(source, reference))
		return;
	add(source, buf_text(&source->key), source->key.length, object);
}

static void add_owners(struct source *source, const struct object *object)
{
	if (!informer_resource(source->primary)) /* its kind is not there: it has no objects */
		return;
	buf_reset(&source->open);
	struct json_slice json = object_open(object, &source->open);
	struct json_iter references = json_iterate(json_get(json_get(json, "metadata"), "ownerReferences"));
	while (json_next(&references))
		add_owner(source, object, references.value);
}

static void add_keys(struct source *source, struct object *object)
{
	size_t length;
	switch (source->options.kind) {
	case SOURCE_WATCH: {
		const char *key = object_key(object, &length);
		add(source, key, length, object);
		break;
	}
	case SOURCE_OWNS:
		add_owners(source, object);
		break;
	case SOURCE_MAP:
		source->options.map(source->options.data, &source->current, object);
		break;
	}
}

/* --- events --- */

/* An update may have taken the object from one owner to another: both want to know. */
static void take(struct source *source)
{
	struct notification *current = &source->current;
	if (source->options.passes && !source->options.passes(source->options.data, current))
		return;
	add_keys(source, current->object);
	if (current->old && current->old != current->object && source->options.kind != SOURCE_WATCH)
		add_keys(source, current->old);
}

static void on_turn(void *data)
{
	struct source *source = data;
	double until = loop_until(informer_loop(source->options.informer));
	while (listener_pop(source->listener, &source->current)) {
		take(source);
		notification_fini(&source->current);
		listener_done(source->listener);
		if (clock_now() < until)
			continue;
		loop_post(informer_loop(source->options.informer), &source->job);
		return;
	}
}

static void on_ready(void *data)
{
	struct source *source = data;
	loop_post(informer_loop(source->options.informer), &source->job);
}

struct source *source_new(struct controller *controller, const struct source_options *options)
{
	struct source *source = alloc_object(&source_type, sizeof(*source));
	source->controller = controller;
	source->options = *options;
	source->primary = options->primary ? informer_ref(options->primary) : NULL;
	buf_init(&source->open, 0);
	buf_init(&source->key, 0);
	loop_job_init(&source->job, on_turn, source);
	/* Nothing is merged: of an add and its delete a reconcile may have seen the object in between, and of two
	 * updates each names an owner. */
	struct listener_options listen = {
	    .every_event = true, .resync = options->resync, .on_ready = on_ready, .data = source};
	source->listener = listener_new(options->informer, &listen);
	return source;
}

void source_free(struct source *source)
{
	if (!source)
		return;
	loop_job_cancel(&source->job);
	listener_free(source->listener);
	if (source->primary)
		informer_unref(source->primary);
	buf_fini(&source->open);
	buf_fini(&source->key);
	alloc_object_free(&source_type, source);
}

void source_open(struct source *source)
{
	if (source->opened)
		return;
	source->opened = true;
	listener_open(source->listener);
}

void source_close(struct source *source)
{
	listener_close(source->listener);
}

size_t source_depth(const struct source *source)
{
	return listener_depth(source->listener);
}
