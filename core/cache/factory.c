#include "cache/factory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cache/feed.h"
#include "cache/keymap.h"

ALLOC_TYPE(factory_type, "factory");

/* One live informer, and how many factories asked for it. */
struct member {
	struct list node; /* the pool's, in the order made */
	struct informer *informer;
	size_t users;
	int page_size;
	bool raw;
	size_t key_length;
	char key[];
};

struct pool {
	struct cluster *cluster;
	struct list members;
	struct list feeds; /* the members' */
	struct keymap by_key;
};

struct use {
	struct member *member;
	bool needed; /* once asked for without `optional` */
};

struct factory {
	struct pool *pool;
	struct use *uses; /* in the order asked for; each member once */
	size_t count, capacity;
	bool shut_down;
};

static const char *member_key(const void *item, size_t *length)
{
	const struct member *member = item;
	*length = member->key_length;
	return member->key;
}

struct pool *pool_new(struct cluster *cluster)
{
	struct pool *pool = alloc_zero(sizeof(*pool));
	pool->cluster = cluster;
	list_init(&pool->members);
	list_init(&pool->feeds);
	keymap_init(&pool->by_key, member_key);
	return pool;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	keymap_fini(&pool->by_key);
	alloc_free(pool);
}

static bool is_named(const struct pool *pool, const char *label)
{
	LIST_EACH (&pool->members, node)
		if (!strcmp(informer_label(LIST_ENTRY(node, struct member, node)->informer), label))
			return true;
	return false;
}

/* Where labels can't tell two informers from each other, as with two transforms, a number does. */
static void name_apart(const struct pool *pool, struct informer *informer)
{
	char *label = alloc_string(informer_label(informer));
	for (unsigned number = 2; is_named(pool, informer_label(informer)); number++) {
		char *numbered = alloc_format("%s %u", label, number);
		informer_rename(informer, numbered);
		alloc_free(numbered);
	}
	alloc_free(label);
}

void pool_each(struct pool *pool, void (*on_informer)(void *data, struct informer *informer), void *data)
{
	LIST_EACH (&pool->members, node) {
		struct informer *informer = LIST_ENTRY(node, struct member, node)->informer;
		if (informer_leads(informer))
			on_informer(data, informer);
	}
}

/* A script's index function runs in it, and may end any informer: so all feeds are held until all have been told. */
static void note_in_feeds(struct pool *pool, const struct write *write, const struct write_result *result)
{
	struct feed **feeds = NULL;
	size_t count = 0;
	LIST_EACH (&pool->feeds, node) {
		struct feed *feed = LIST_ENTRY(node, struct feed, node);
		if (feed->resource != write->resource)
			continue;
		feeds = alloc_resize(feeds, (count + 1) * sizeof(*feeds));
		feeds[count++] = feed_ref(feed);
	}
	for (size_t i = 0; i < count; i++) {
		feed_note_write(feeds[i], write, result);
		feed_unref(feeds[i]);
	}
	alloc_free(feeds);
}

void pool_note_write(struct pool *pool, const struct write *write)
{
	struct write_result result;
	write_read(write, &result);
	if (result.outcome != WRITE_NOTHING)
		note_in_feeds(pool, write, &result);
	write_result_fini(&result);
}

static bool is_of(const struct informer *informer, const struct resource *resource)
{
	return informer_resource(informer) == resource;
}

void pool_each_object(struct pool *pool, const struct resource *resource, const char *namespace, const char *name,
		      bool (*on_object)(void *data, const struct informer *informer, const struct object *object),
		      void *data)
{
	LIST_EACH (&pool->members, node) {
		struct informer *informer = LIST_ENTRY(node, struct member, node)->informer;
		if (!informer_leads(informer) || !is_of(informer, resource) || !informer_is_faithful(informer))
			continue;
		const struct object *object = store_get(informer_store(informer), namespace, name);
		if (object && !on_object(data, informer, object))
			return;
	}
}

static struct member *make_member(struct pool *pool, const struct informer_spec *spec, const struct buf *key,
				  struct err *err)
{
	struct informer *informer = informer_new(pool->cluster, &pool->feeds, spec, err);
	if (!informer)
		return NULL;
	struct member *member = alloc_zero(sizeof(*member) + key->length + 1);
	member->informer = informer;
	member->page_size = spec->page_size;
	member->raw = spec->raw;
	name_apart(pool, informer);
	member->key_length = key->length;
	memcpy(member->key, key->data, key->length);
	list_add_tail(&pool->members, &member->node);
	keymap_put(&pool->by_key, member);
	return member;
}

/* The last user ends the informer, also where handlers or a barrier still hold it: what they hold says no more. */
static void leave(struct pool *pool, const struct use *use)
{
	struct member *member = use->member;
	if (use->needed)
		informer_unneed(member->informer);
	if (--member->users)
		return;
	list_remove(&member->node);
	keymap_remove(&pool->by_key, member->key, member->key_length);
	informer_stop(member->informer);
	informer_unref(member->informer);
	alloc_free(member);
}

struct factory *factory_new(struct pool *pool)
{
	struct factory *factory = alloc_object(&factory_type, sizeof(*factory));
	factory->pool = pool;
	return factory;
}

void factory_free(struct factory *factory)
{
	if (!factory)
		return;
	factory_shutdown(factory);
	alloc_object_free(&factory_type, factory);
}

/* NULL when there is none. */
static struct use *find_use(const struct factory *factory, const struct informer *informer)
{
	for (size_t i = 0; i < factory->count; i++)
		if (factory->uses[i].member->informer == informer)
			return &factory->uses[i];
	return NULL;
}

static struct use *add_use(struct factory *factory, struct member *member)
{
	if (factory->count == factory->capacity) {
		factory->capacity = factory->capacity ? factory->capacity * 2 : 8;
		factory->uses = alloc_resize(factory->uses, factory->capacity * sizeof(*factory->uses));
	}
	struct use *use = &factory->uses[factory->count++];
	*use = (struct use){.member = member};
	member->users++;
	return use;
}

static void join(struct factory *factory, struct member *member, bool optional)
{
	struct use *use = find_use(factory, member->informer);
	if (!use)
		use = add_use(factory, member);
	if (optional || use->needed)
		return;
	use->needed = true;
	informer_need(member->informer);
}

static void compare_page_size(const struct member *member, const struct informer_spec *spec)
{
	if (spec->page_size && spec->page_size != member->page_size)
		log_info(LOG_FIELDS({"informer", informer_label(member->informer)}),
			 "the informer exists already: page_size stays %d, as it was first asked for, not %d",
			 member->page_size, spec->page_size);
}

static const char *cache_name(bool raw)
{
	return raw ? "raw" : "compressed";
}

static void compare_cache(const struct member *member, const struct informer_spec *spec)
{
	if (spec->raw != member->raw)
		log_info(LOG_FIELDS({"informer", informer_label(member->informer)}),
			 "the informer exists already: its cache stays %s, as it was first asked for, not %s",
			 cache_name(member->raw), cache_name(spec->raw));
}

static struct informer *find_or_make(struct factory *factory, const struct informer_spec *spec, struct err *err)
{
	struct pool *pool = factory->pool;
	struct buf key;
	buf_init(&key, 0);
	informer_spec_key(spec, &key);
	struct member *member = keymap_get(&pool->by_key, key.data, key.length);
	if (member) {
		compare_page_size(member, spec);
		compare_cache(member, spec);
	} else {
		member = make_member(pool, spec, &key, err);
	}
	buf_fini(&key);
	if (!member)
		return NULL;
	join(factory, member, spec->optional);
	return member->informer;
}

struct informer *factory_informer(struct factory *factory, const struct informer_spec *spec, struct err *err)
{
	if (!factory->shut_down)
		return find_or_make(factory, spec, err);
	err_set(err, "", "the factory is shut down");
	return NULL;
}

void factory_start(struct factory *factory)
{
	for (size_t i = 0; i < factory->count; i++)
		informer_start(factory->uses[i].member->informer);
}

void factory_shutdown(struct factory *factory)
{
	factory->shut_down = true;
	for (size_t i = 0; i < factory->count; i++)
		leave(factory->pool, &factory->uses[i]);
	alloc_free(factory->uses);
	factory->uses = NULL;
	factory->count = factory->capacity = 0;
}

bool factory_needs(const struct factory *factory, const struct informer *informer)
{
	const struct use *use = find_use(factory, informer);
	return use && use->needed;
}

void factory_add_to_barrier(struct factory *factory, struct barrier *barrier)
{
	for (size_t i = 0; i < factory->count; i++) {
		const struct use *use = &factory->uses[i];
		if (informer_started(use->member->informer))
			barrier_add(barrier, use->member->informer, !use->needed);
	}
}

bool factory_is_shut_down(const struct factory *factory)
{
	return factory->shut_down;
}

void factory_each(struct factory *factory, void (*on_informer)(void *data, struct informer *informer), void *data)
{
	for (size_t i = 0; i < factory->count; i++)
		on_informer(data, factory->uses[i].member->informer);
}
