#include "cache/filter.h"

#include "base/alloc.h"
#include "cache/keymap.h"

ALLOC_TYPE(filter_type, "filter");

struct filter {
	enum filter_verdict (*test)(void *data, const struct object *object);
	void *data;
	struct keymap told; /* struct object, a reference each: the last that the handler was told, by key */
};

static const char *told_key(const void *item, size_t *length)
{
	return object_key(item, length);
}

struct filter *filter_new(enum filter_verdict (*test)(void *data, const struct object *object), void *data)
{
	struct filter *filter = alloc_object(&filter_type, sizeof(*filter));
	filter->test = test;
	filter->data = data;
	keymap_init(&filter->told, told_key);
	return filter;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	size_t cursor = 0;
	for (struct object *object; (object = keymap_next(&filter->told, &cursor));)
		object_unref(object);
	keymap_fini(&filter->told);
	alloc_object_free(&filter_type, filter);
}

/* The one told before, its reference with it; NULL when there is none. */
static struct object *forget(struct filter *filter, const struct object *object)
{
	size_t length;
	const char *key = object_key(object, &length);
	return keymap_remove(&filter->told, key, length);
}

static void turn_to_add(struct notification *notification)
{
	object_unref(notification->old);
	notification->old = NULL;
	notification->type = NOTIFY_ADD;
	notification->resync = false;
}

/* told: taken. */
static void turn_to_delete(struct notification *notification, struct object *told)
{
	notification_fini(notification);
	*notification = (struct notification){.type = NOTIFY_DELETE, .object = told};
}

static bool admit_object(struct filter *filter, struct notification *notification)
{
	size_t length;
	const char *key = object_key(notification->object, &length);
	bool was_in = keymap_get(&filter->told, key, length) != NULL;
	enum filter_verdict verdict = filter->test(filter->data, notification->object);
	bool is_in = verdict == FILTER_FAILS ? was_in : verdict == FILTER_PASSES;
	if (!was_in && !is_in)
		return false;
	if (!is_in) {
		turn_to_delete(notification, forget(filter, notification->object));
		return true;
	}
	if (!was_in)
		turn_to_add(notification);
	object_unref(keymap_put(&filter->told, object_ref(notification->object)));
	return true;
}

bool filter_admit(struct filter *filter, struct notification *notification)
{
	if (notification->type != NOTIFY_DELETE)
		return admit_object(filter, notification);
	struct object *told = forget(filter, notification->object);
	object_unref(told);
	return told != NULL;
}
