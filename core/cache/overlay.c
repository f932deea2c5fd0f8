#include "cache/overlay.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(entry_type, "overlay entry");

struct overlay_entry {
	struct list node;
	struct object *own;     /* the answer; of a tombstone the last one known */
	struct object *history; /* NULL where the watch has none */
	bool shown;             /* the store has own; else it has nothing of this key */
	bool gone;              /* a tombstone; then not shown */
	double answered_at;
};

static const char *entry_key(const void *item, size_t *length)
{
	const struct overlay_entry *entry = item;
	return object_key(entry->own, length);
}

static struct overlay_entry *entry_of(struct list *node)
{
	return LIST_ENTRY(node, struct overlay_entry, node);
}

static bool is_of(const struct object *object, const char *uid)
{
	return object && object_has_uid(object, uid);
}

static bool is_newer(const struct object *a, const struct object *b)
{
	bool comparable;
	return object_version_compare(object_version(a), object_version(b), &comparable) > 0 && comparable;
}

/* What can't be compared with it has passed it too: nothing else would ever show that. */
static bool has_passed(const struct overlay_entry *entry, const char *version)
{
	bool comparable;
	return object_version_compare(object_version(entry->own), version, &comparable) <= 0 || !comparable;
}

static bool is_integer(const char *version)
{
	bool comparable;
	object_version_compare(version, version, &comparable);
	return comparable;
}

void overlay_init(struct overlay *overlay, struct store *store)
{
	overlay->store = store;
	overlay->relisting = false;
	keymap_init(&overlay->entries, entry_key);
	list_init(&overlay->ahead);
	list_init(&overlay->passed);
}

static void free_entry(struct overlay_entry *entry)
{
	object_unref(entry->own);
	object_unref(entry->history);
	alloc_object_free(&entry_type, entry);
}

static void free_entries(struct list *entries)
{
	LIST_EACH (entries, node) {
		list_remove(node);
		free_entry(entry_of(node));
	}
}

void overlay_fini(struct overlay *overlay)
{
	keymap_fini(&overlay->entries);
	free_entries(&overlay->ahead);
	free_entries(&overlay->passed);
}

struct overlay_entry *overlay_find(const struct overlay *overlay, const char *key, size_t length)
{
	return overlay->entries.count ? keymap_get(&overlay->entries, key, length) : NULL;
}

struct object *overlay_history(const struct overlay_entry *entry)
{
	return entry->history;
}

bool overlay_holds(const struct overlay *overlay, const char *key, size_t length)
{
	const struct overlay_entry *entry = overlay_find(overlay, key, length);
	return (entry && entry->history) || store_get_key(overlay->store, key, length);
}

/* By version. Answers come nearly in order, so the walk from the end is short. */
static void line_up(struct overlay *overlay, struct overlay_entry *entry)
{
	list_remove(&entry->node);
	struct list *before = overlay->ahead.prev;
	while (before != &overlay->ahead && is_newer(entry_of(before)->own, entry->own))
		before = before->prev;
	list_add_tail(before->next, &entry->node);
}

static void store_object(struct overlay *overlay, struct object *object)
{
	object_unref(overlay->relisting ? store_put_unfiled(overlay->store, object)
					: store_put(overlay->store, object));
}

static void store_nothing(struct overlay *overlay, const struct overlay_entry *entry)
{
	size_t length;
	const char *key = entry_key(entry, &length);
	object_unref(store_remove(overlay->store, key, length));
}

static void show_own(struct overlay *overlay, const struct overlay_entry *entry)
{
	if (entry->shown)
		store_object(overlay, entry->own);
	else
		store_nothing(overlay, entry);
}

static void show_history(struct overlay *overlay, const struct overlay_entry *entry)
{
	if (entry->history)
		store_object(overlay, entry->history);
	else
		store_nothing(overlay, entry);
}

static void forget(struct overlay *overlay, struct overlay_entry *entry)
{
	size_t length;
	const char *key = entry_key(entry, &length);
	keymap_remove(&overlay->entries, key, length);
	list_remove(&entry->node);
	free_entry(entry);
}

/* Of a new entry the store's object is the history. NULL where there are too many. */
static struct overlay_entry *add_entry(struct overlay *overlay, struct object *own, struct object *stored)
{
	if (overlay->entries.count >= OVERLAY_MOST)
		return NULL;
	struct overlay_entry *entry = alloc_object(&entry_type, sizeof(*entry));
	list_init(&entry->node);
	entry->own = object_ref(own);
	entry->history = stored ? object_ref(stored) : NULL;
	keymap_put(&overlay->entries, entry);
	return entry;
}

static void set_own(struct overlay *overlay, struct overlay_entry *entry, struct object *own, bool shown)
{
	object_ref(own);
	object_unref(entry->own);
	entry->own = own;
	entry->shown = shown;
	entry->gone = false;
	entry->answered_at = clock_now();
	line_up(overlay, entry);
	show_own(overlay, entry);
}

static bool has_news(const struct overlay_entry *entry, const struct object *stored, const struct object *object,
		     bool shown)
{
	if (!is_integer(object_version(object)))
		return false;
	if (entry && entry->gone && object_same_uid(entry->own, object))
		return false; /* an answer that is late */
	if (entry)
		return is_newer(object, entry->own);
	return stored ? is_newer(object, stored) : shown;
}

void overlay_put(struct overlay *overlay, struct object *object, bool shown)
{
	size_t length;
	const char *key = object_key(object, &length);
	struct overlay_entry *entry = overlay_find(overlay, key, length);
	struct object *stored = store_get_key(overlay->store, key, length);
	if (!has_news(entry, stored, object, shown))
		return;
	if (!entry)
		entry = add_entry(overlay, object, stored);
	if (entry)
		set_own(overlay, entry, object, shown);
}

/* The newest that is known of that uid, or is newer than another uid that is known; NULL where nothing has to be
 * hidden.
 */
static struct object *choose_last(struct object *known, const char *uid, struct object *last)
{
	if (last && !is_integer(object_version(last)))
		last = NULL;
	if (!known || (last && is_newer(last, known)))
		return last;
	return is_of(known, uid) ? known : NULL;
}

void overlay_remove(struct overlay *overlay, const char *key, size_t length, const char *uid, struct object *last)
{
	struct overlay_entry *entry = overlay_find(overlay, key, length);
	struct object *stored = store_get_key(overlay->store, key, length);
	last = choose_last(entry ? entry->own : stored, uid, last);
	if (!last)
		return;
	if (!entry)
		entry = add_entry(overlay, last, stored);
	if (!entry)
		return;
	set_own(overlay, entry, last, false);
	entry->gone = true;
}

struct object *overlay_tell(struct overlay *overlay, struct overlay_entry *entry, struct object *object)
{
	struct object *before = entry->history;
	entry->history = object ? object_ref(object) : NULL;
	line_up(overlay, entry); /* a tombstone that was passed may be done with */
	return before;
}

static bool has_to_last(const struct overlay_entry *entry)
{
	return entry->gone && entry->history && object_same_uid(entry->history, entry->own);
}

static void move_to_passed(struct overlay *overlay, struct overlay_entry *entry)
{
	list_remove(&entry->node);
	list_add_tail(&overlay->passed, &entry->node);
}

void overlay_pass(struct overlay *overlay, const char *version)
{
	if (list_is_empty(&overlay->ahead) || !is_integer(version))
		return;
	while (!list_is_empty(&overlay->ahead)) {
		struct overlay_entry *entry = entry_of(overlay->ahead.next);
		if (!has_passed(entry, version))
			return;
		if (has_to_last(entry)) {
			move_to_passed(overlay, entry);
		} else {
			show_history(overlay, entry);
			forget(overlay, entry);
		}
	}
}

static void lift_all(struct overlay *overlay, struct list *entries)
{
	LIST_EACH (entries, node)
		show_history(overlay, entry_of(node));
}

void overlay_lift(struct overlay *overlay)
{
	overlay->relisting = true;
	lift_all(overlay, &overlay->ahead);
	lift_all(overlay, &overlay->passed);
}

static void take_history(struct overlay *overlay, struct overlay_entry *entry)
{
	size_t length;
	const char *key = entry_key(entry, &length);
	struct object *stored = store_get_key(overlay->store, key, length);
	object_unref(entry->history);
	entry->history = stored ? object_ref(stored) : NULL;
}

static void lay(struct overlay *overlay, struct overlay_entry *entry, const char *version, double truth)
{
	take_history(overlay, entry);
	bool told = !version || has_passed(entry, version);
	if (entry->answered_at < truth || (told && !has_to_last(entry))) {
		forget(overlay, entry);
		return;
	}
	show_own(overlay, entry);
	if (told)
		move_to_passed(overlay, entry);
	else
		line_up(overlay, entry);
}

void overlay_lay(struct overlay *overlay, const char *version, double truth)
{
	struct list entries;
	list_init(&entries);
	list_move(&entries, &overlay->ahead);
	list_move(&entries, &overlay->passed);
	LIST_EACH (&entries, node)
		lay(overlay, entry_of(node), version, truth);
	overlay->relisting = false;
}

static bool each_hidden(const struct list *entries, store_visit_fn on_object, void *data)
{
	LIST_EACH ((struct list *)entries, node) {
		const struct overlay_entry *entry = entry_of(node);
		if (!entry->shown && entry->history && !on_object(data, entry->history))
			return false;
	}
	return true;
}

void overlay_each_hidden(const struct overlay *overlay, store_visit_fn on_object, void *data)
{
	if (each_hidden(&overlay->ahead, on_object, data))
		each_hidden(&overlay->passed, on_object, data);
}

#ifdef PERILUNE_DEBUG
static size_t check_entries(const struct overlay *overlay, const struct list *entries)
{
	size_t count = 0;
	LIST_EACH ((struct list *)entries, node) {
		struct overlay_entry *entry = entry_of(node);
		size_t length;
		const char *key = entry_key(entry, &length);
		assert(overlay_find(overlay, key, length) == entry);
		assert(store_get_key(overlay->store, key, length) == (entry->shown ? entry->own : NULL));
		assert(!entry->shown || !entry->gone);
		count++;
	}
	return count;
}
#endif

void overlay_check(const struct overlay *overlay)
{
#ifdef PERILUNE_DEBUG
	size_t count = check_entries(overlay, &overlay->ahead) + check_entries(overlay, &overlay->passed);
	assert(count == overlay->entries.count);
	LIST_EACH ((struct list *)&overlay->passed, node)
		assert(has_to_last(entry_of(node)));
	LIST_EACH ((struct list *)&overlay->ahead, node)
		assert(node->prev == &overlay->ahead || !is_newer(entry_of(node->prev)->own, entry_of(node)->own));
#else
	(void)overlay;
#endif
}
