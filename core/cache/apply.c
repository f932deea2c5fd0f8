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
	if (!object_same_uid(stored, arrived))
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

/* What the watch has told last of one key: the store's object, or the history where an own write covers it. */
struct told {
	const char *key;
	size_t length;
	struct overlay_entry *entry; /* NULL where nothing covers it */
	struct object *object;       /* borrowed; NULL where there is none */
};

static struct told find_told(const struct apply *apply, const struct object *object)
{
	struct told told = {0};
	told.key = object_key(object, &told.length);
	told.entry = overlay_find(apply->overlay, told.key, told.length);
	told.object = told.entry ? overlay_history(told.entry) : store_get_key(apply->store, told.key, told.length);
	return told;
}

/* Both return the object before, owned by the caller. */
static struct object *replace_told(struct apply *apply, const struct told *told, struct object *object)
{
	return told->entry ? overlay_tell(apply->overlay, told->entry, object) : store_put(apply->store, object);
}

static struct object *remove_told(struct apply *apply, const struct told *told)
{
	return told->entry ? overlay_tell(apply->overlay, told->entry, NULL)
			   : store_remove(apply->store, told->key, told->length);
}

static void apply_put(struct apply *apply, struct object *object)
{
	struct told told = find_told(apply, object);
	enum standing standing = judge(told.object, object);
	apply->duplicates += standing == STANDS_SAME;
	apply->stale += standing == STANDS_OLDER;
	if (standing == STANDS_SAME || standing == STANDS_OLDER)
		return;
	struct object *before = replace_told(apply, &told, object);
	tell_put(apply, standing, object, before, false);
	object_unref(before);
}

/* A delete of an older incarnation says nothing about the one that was told; of a later one it says that this one is
 * gone too. */
static bool is_stale_delete(const struct object *told, const struct object *arrived)
{
	bool comparable;
	int order = object_version_compare(object_version(arrived), object_version(told), &comparable);
	return comparable && order < 0;
}

static void apply_delete(struct apply *apply, struct object *object)
{
	struct told told = find_told(apply, object);
	if (!told.object) {
		apply->duplicates++;
		return;
	}
	if (is_stale_delete(told.object, object)) {
		apply->stale++;
		return;
	}
	bool other = !object_same_uid(told.object, object);
	struct object *before = remove_told(apply, &told);
	tell_delete(apply, other ? before : object, other);
	object_unref(before);
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
	overlay_lift(apply->overlay);
	store_begin_round(apply->store);
	for (size_t i = 0; i < delta->count; i++)
		changes[i] = replace_one(apply, delta->objects[i], delta->truth);
	remove_missed(apply, delta->namespace, &gone);
	overlay_lay(apply->overlay, delta->version, delta->truth ? delta->asked_at : 0);
	tell_gone(apply, &gone);
	tell_changes(apply, delta, changes, initial);
	alloc_free(changes);
}

void apply_delta(struct apply *apply, struct delta *delta, bool initial)
{
	switch (delta->type) {
	case DELTA_PUT:
		apply_put(apply, delta->object);
		overlay_pass(apply->overlay, object_version(delta->object));
		break;
	case DELTA_DELETE:
		apply_delete(apply, delta->object);
		overlay_pass(apply->overlay, object_version(delta->object));
		break;
	case DELTA_REPLACE:
		apply_replace(apply, delta, initial);
		break;
	case DELTA_BOOKMARK:
		overlay_pass(apply->overlay, delta->version ? delta->version : "");
		break;
	}
}
