#include "cache/apply.h"

#include <string.h>

#include "base/alloc.h"

/* How an object that arrives stands to the stored one of the same key. */
enum standing {
	STANDS_NEW,     /* nothing is stored */
	STANDS_NEWER,   /* to be taken; also where versions can't be compared */
	STANDS_SAME,    /* the same version */
	STANDS_OLDER,   /* the stored one is ahead */
	STANDS_REPLACED /* another uid: the stored one is gone, this one was created */
};

static enum standing judge(const struct object *stored, const struct object *arrived)
{
	bool comparable;
	if (!stored)
		return STANDS_NEW;
	if (strcmp(object_uid(stored), object_uid(arrived)))
		return STANDS_REPLACED;
	int order = object_version_compare(object_version(arrived), object_version(stored), &comparable);
	if (order == 0)
		return STANDS_SAME;
	return comparable && order < 0 ? STANDS_OLDER : STANDS_NEWER;
}

static void tell(struct apply *apply, enum notification_type type, struct object *object, struct object *old,
		 bool initial, bool unknown)
{
	struct notification notification = {
	    .type = type,
	    .object = object,
	    .old = old,
	    .initial = initial,
	    .final_state_unknown = unknown,
	};
	apply->notify(apply->data, &notification);
}

static void tell_delete(struct apply *apply, struct object *object, bool unknown)
{
	tell(apply, NOTIFY_DELETE, object, NULL, false, unknown);
}

/* The notifications for object, which the store now holds in place of before. */
static void tell_put(struct apply *apply, enum standing standing, struct object *object, struct object *before,
		     bool initial)
{
	if (standing == STANDS_NEWER) {
		tell(apply, NOTIFY_UPDATE, object, before, false, false);
		return;
	}
	if (standing == STANDS_REPLACED)
		tell_delete(apply, before, true);
	tell(apply, NOTIFY_ADD, object, NULL, initial, false);
}

static void apply_put(struct apply *apply, struct object *object)
{
	size_t length;
	const char *key = object_key(object, &length);
	enum standing standing = judge(store_get_key(apply->store, key, length), object);
	apply->duplicates += standing == STANDS_SAME;
	apply->stale += standing == STANDS_OLDER;
	if (standing == STANDS_SAME || standing == STANDS_OLDER)
		return;
	struct object *before = store_put(apply->store, object);
	tell_put(apply, standing, object, before, false);
	object_unref(before);
}

/* A delete of an older incarnation says nothing about the stored one; of a later one it says that the stored one is
 * gone too. */
static bool is_stale_delete(const struct object *stored, const struct object *arrived)
{
	bool comparable;
	int order = object_version_compare(object_version(arrived), object_version(stored), &comparable);
	return comparable && order < 0;
}

static void apply_delete(struct apply *apply, struct object *object)
{
	size_t length;
	const char *key = object_key(object, &length);
	struct object *stored = store_get_key(apply->store, key, length);
	if (!stored) {
		apply->duplicates++;
		return;
	}
	if (is_stale_delete(stored, object)) {
		apply->stale++;
		return;
	}
	bool other = strcmp(object_uid(stored), object_uid(object)) != 0;
	stored = store_remove(apply->store, key, length);
	tell_delete(apply, other ? stored : object, other);
	object_unref(stored);
}

/* What a REPLACE did to one key of the list. */
struct change {
	enum standing standing;
	struct object *before; /* owned; NULL where there was none or nothing changed */
};

static struct change replace_one(struct apply *apply, struct object *object, bool truth)
{
	size_t length;
	const char *key = object_key(object, &length);
	struct object *stored = store_touch(apply->store, key, length);
	enum standing standing = judge(stored, object);
	/* The truth may have gone back, and come to the same version on another way. */
	if (truth && (standing == STANDS_OLDER || (standing == STANDS_SAME && !object_same_content(stored, object))))
		standing = STANDS_NEWER;
	if (standing == STANDS_SAME || standing == STANDS_OLDER)
		return (struct change){standing, NULL};
	return (struct change){standing, store_put(apply->store, object)};
}

struct gone {
	struct object **objects;
	size_t count, capacity;
};

static bool note_gone(void *data, struct object *object)
{
	struct gone *gone = data;
	if (gone->count == gone->capacity) {
		gone->capacity = gone->capacity ? gone->capacity * 2 : 16;
		gone->objects = alloc_resize(gone->objects, gone->capacity * sizeof(*gone->objects));
	}
	gone->objects[gone->count++] = object;
	return true;
}

/* Takes out what the list did not name; its references pass to gone. */
static void remove_missed(struct apply *apply, const char *namespace, struct gone *gone)
{
	store_each_missed(apply->store, namespace, note_gone, gone);
	for (size_t i = 0; i < gone->count; i++) {
		size_t length;
		const char *key = object_key(gone->objects[i], &length);
		gone->objects[i] = store_remove(apply->store, key, length);
	}
}

static void tell_gone(struct apply *apply, struct gone *gone)
{
	for (size_t i = 0; i < gone->count; i++) {
		tell_delete(apply, gone->objects[i], true);
		object_unref(gone->objects[i]);
	}
	alloc_free(gone->objects);
}

static void tell_changes(struct apply *apply, const struct delta *delta, const struct change *changes, bool initial)
{
	for (size_t i = 0; i < delta->count; i++)
		if (changes[i].standing == STANDS_REPLACED)
			tell_delete(apply, changes[i].before, true);
	for (size_t i = 0; i < delta->count; i++) {
		enum standing standing = changes[i].standing;
		if (standing == STANDS_NEWER)
			tell(apply, NOTIFY_UPDATE, delta->objects[i], changes[i].before, false, false);
		else if (standing == STANDS_NEW || standing == STANDS_REPLACED)
			tell(apply, NOTIFY_ADD, delta->objects[i], NULL, initial, false);
		object_unref(changes[i].before);
	}
}

static void apply_replace(struct apply *apply, const struct delta *delta, bool initial)
{
	struct change *changes = alloc_zero(delta->count * sizeof(*changes));
	struct gone gone = {0};
	store_begin_round(apply->store);
	for (size_t i = 0; i < delta->count; i++)
		changes[i] = replace_one(apply, delta->objects[i], delta->truth);
	remove_missed(apply, delta->namespace, &gone);
	tell_gone(apply, &gone);
	tell_changes(apply, delta, changes, initial);
	alloc_free(changes);
}

void apply_delta(struct apply *apply, struct delta *delta, bool initial)
{
	switch (delta->type) {
	case DELTA_PUT:
		apply_put(apply, delta->object);
		break;
	case DELTA_DELETE:
		apply_delete(apply, delta->object);
		break;
	case DELTA_REPLACE:
		apply_replace(apply, delta, initial);
		break;
	}
}
