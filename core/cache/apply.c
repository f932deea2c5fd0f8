#include "cache/apply.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

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

/* Of an object of a list. The truth may have gone back, and come to the same version on another way. */
static bool is_news(const struct object *stored, const struct object *object, bool truth)
{
	switch (judge(stored, object)) {
	case STANDS_SAME:
		return truth && !object_same_content(stored, object);
	case STANDS_OLDER:
		return truth;
	default:
		return true;
	}
}

static void begin(struct replace *replace, enum replace_phase phase)
{
	replace->phase = phase;
	replace->next = 0;
}

static void begin_replace(struct apply *apply)
{
	apply->replace = (struct replace){
	    .objects = store_count(apply->store),
	    .bytes = store_bytes(apply->store),
	    .lifted = !overlay_is_empty(apply->overlay),
	};
	overlay_lift(apply->overlay);
	store_begin_round(apply->store);
	begin(&apply->replace, REPLACE_COMPARING);
}

static void compare_one(struct apply *apply, struct delta *delta, size_t i)
{
	struct object *object = delta->objects[i];
	size_t length;
	const char *key = object_key(object, &length);
	delta->objects[i] = NULL;
	if (is_news(store_touch(apply->store, key, length), object, delta->truth))
		delta->objects[apply->replace.kept++] = object;
	else
		object_unref(object);
}

static void begin_missing(struct apply *apply, struct delta *delta)
{
	struct replace *replace = &apply->replace;
	delta->count = replace->kept;
	replace->cursor = store_begin(apply->store, delta->namespace);
	begin(replace, REPLACE_MISSING);
}

static void note_gone(struct replace *replace, struct object *object)
{
	if (replace->gone_count == replace->gone_capacity) {
		replace->gone_capacity = replace->gone_capacity ? replace->gone_capacity * 2 : 16;
		replace->gone = alloc_resize(replace->gone, replace->gone_capacity * sizeof(*replace->gone));
	}
	replace->gone[replace->gone_count++] = object;
}

static void look_for_missing(struct apply *apply, const struct delta *delta)
{
	struct replace *replace = &apply->replace;
	bool missed;
	struct object *object = store_next(apply->store, &replace->cursor, &missed);
	if (object && missed) {
		note_gone(replace, object);
	} else if (!object) {
		replace->before = alloc_zero(delta->count * sizeof(*replace->before));
		begin(replace, REPLACE_CHANGING);
	}
}

/* A list that names a key twice: what came first stays unless the second is news to it. */
static void change_one(struct apply *apply, struct delta *delta, size_t i)
{
	struct object *object = delta->objects[i], *before = store_put_unfiled(apply->store, object);
	apply->replace.before[i] = before;
	if (is_news(before, object, delta->truth)) {
		apply->replace.recreated |= judge(before, object) == STANDS_REPLACED;
		return;
	}
	object_unref(store_put_unfiled(apply->store, before));
	object_unref(object);
	delta->objects[i] = NULL;
}

static void remove_one(struct apply *apply)
{
	struct replace *replace = &apply->replace;
	size_t length;
	const char *key = object_key(replace->gone[replace->removed], &length);
	replace->gone[replace->removed++] = store_remove(apply->store, key, length);
}

static void end_changes(struct apply *apply, const struct delta *delta)
{
	overlay_lay(apply->overlay, delta->version, delta->truth ? delta->asked_at : 0);
	begin(&apply->replace, REPLACE_FILING);
}

static void tell_recreated(struct apply *apply, const struct delta *delta, size_t i)
{
	struct object *before = apply->replace.before[i], *object = delta->objects[i];
	if (object && judge(before, object) == STANDS_REPLACED)
		tell_delete(apply, before, true);
}

static void tell_one(struct apply *apply, struct delta *delta, bool initial, size_t i)
{
	struct object *before = apply->replace.before[i], *object = delta->objects[i];
	enum standing standing = object ? judge(before, object) : STANDS_SAME;
	if (object && (standing == STANDS_NEW || standing == STANDS_REPLACED))
		tell(apply, NOTIFY_ADD, object, NULL, initial, false);
	else if (object)
		tell(apply, NOTIFY_UPDATE, object, before, false, false);
	object_unref(before);
	object_unref(object);
	apply->replace.before[i] = delta->objects[i] = NULL;
}

static void tell_gone(struct apply *apply, size_t i)
{
	struct object *object = apply->replace.gone[i];
	tell_delete(apply, object, true);
	object_unref(object);
	apply->replace.gone[i] = NULL;
}

static void end_replace(struct replace *replace)
{
	alloc_free(replace->before);
	alloc_free(replace->gone);
	*replace = (struct replace){.phase = REPLACE_NONE};
}

/* One thing more, or the next phase. */
static void advance(struct apply *apply, struct delta *delta, bool initial, double until)
{
	struct replace *replace = &apply->replace;
	switch (replace->phase) {
	case REPLACE_NONE:
		begin_replace(apply);
		break;
	case REPLACE_COMPARING:
		if (replace->next < delta->count)
			compare_one(apply, delta, replace->next++);
		else
			begin_missing(apply, delta);
		break;
	case REPLACE_MISSING:
		look_for_missing(apply, delta);
		break;
	case REPLACE_CHANGING:
		if (replace->next < delta->count)
			change_one(apply, delta, replace->next++);
		else
			begin(replace, REPLACE_REMOVING);
		break;
	case REPLACE_REMOVING:
		if (replace->removed < replace->gone_count)
			remove_one(apply);
		else
			end_changes(apply, delta);
		break;
	case REPLACE_FILING:
		if (store_file(apply->store, until))
			begin(replace, REPLACE_TELLING_GONE);
		break;
	case REPLACE_TELLING_GONE:
		if (replace->next < replace->gone_count)
			tell_gone(apply, replace->next++);
		else
			begin(replace, REPLACE_TELLING_RECREATED);
		break;
	case REPLACE_TELLING_RECREATED:
		if (replace->recreated && replace->next < delta->count)
			tell_recreated(apply, delta, replace->next++);
		else
			begin(replace, REPLACE_TELLING);
		break;
	case REPLACE_TELLING:
		if (replace->next < delta->count)
			tell_one(apply, delta, initial, replace->next++);
		else
			end_replace(replace);
		break;
	}
}

/* Things between two looks at the clock. */
#define STRIDE 16

static bool apply_replace(struct apply *apply, struct delta *delta, bool initial, double until)
{
	do {
		for (int i = 0; i < STRIDE; i++) {
			advance(apply, delta, initial, until);
			if (apply->replace.phase == REPLACE_NONE)
				return true;
		}
	} while (clock_now() < until);
	return false;
}

bool apply_is_torn(const struct apply *apply)
{
	enum replace_phase phase = apply->replace.phase;
	return phase == REPLACE_CHANGING || phase == REPLACE_REMOVING ||
	       (apply->replace.lifted && phase > REPLACE_NONE && phase < REPLACE_FILING);
}

void apply_mend(struct apply *apply, struct delta *delta)
{
	while (apply_is_torn(apply))
		advance(apply, delta, false, 0);
}

void apply_drop(struct apply *apply, const struct delta *delta)
{
	struct replace *replace = &apply->replace;
	for (size_t i = 0; replace->before && i < delta->count; i++)
		object_unref(replace->before[i]);
	for (size_t i = 0; i < replace->removed; i++)
		object_unref(replace->gone[i]);
	end_replace(replace);
}

bool apply_delta(struct apply *apply, struct delta *delta, bool initial, double until)
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
		return apply_replace(apply, delta, initial, until);
	case DELTA_BOOKMARK:
		overlay_pass(apply->overlay, delta->version ? delta->version : "");
		break;
	}
	return true;
}
