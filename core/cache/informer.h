/* informer: the cache of one (resource, namespaces, selectors, projection), shared by all who ask for it in the same
 * words.
 *
 * Its feed watches the API server and fills the store; the informer tells its listeners. Informers that ask for the
 * same in other words (kind Pod, resource pods) get to share one feed once the kind is looked up. Created idle; nothing
 * connects before informer_start. Counted by its users; the last one that leaves ends it. */
#ifndef PERILUNE_CACHE_INFORMER_H
#define PERILUNE_CACHE_INFORMER_H

#include "cache/listener.h"
#include "cache/projection.h"
#include "cache/reflector.h"
#include "cache/store.h"

struct informer;

/* What makes two informers the same one. All borrowed for the call; NULL where not given. */
struct informer_spec {
	const char *api_version, *kind, *resource; /* kind or resource */
	const char *const *namespaces;             /* count 0: all */
	size_t namespace_count;
	const char *label_selector, *field_selector;
	const char *const *drop;
	size_t drop_count;
	bool drop_given; /* false: drop is { metadata.managedFields } */
	const char *const *keep;
	size_t keep_count;
	bool metadata_only;
	struct transform *transform;
	int page_size; /* not part of its identity: the first asker's */
	bool raw;      /* the same; objects are kept as they came, not packed */
	bool optional; /* nor is this: the factory's that asks does not wait for it */
};

/* The identity as one text; appended to out. */
void informer_spec_key(const struct informer_spec *spec, struct buf *out);

/* feeds: a list for the feeds of all informers of the cluster, which outlives them. NULL with err: a malformed path,
 * apiVersion or selector. The count is 1. Factories call this; scripts go through a factory. */
struct informer *informer_new(struct cluster *cluster, struct list *feeds, const struct informer_spec *spec,
			      struct err *err);
struct informer *informer_ref(struct informer *informer);
void informer_unref(struct informer *informer); /* the last one ends its requests and frees the store */

/* One more, one less of those who wait for it to sync. An absent or forbidden kind that nobody waits for is parked. */
void informer_need(struct informer *informer);
void informer_unneed(struct informer *informer);

void informer_start(struct informer *informer); /* again: nothing */
bool informer_started(const struct informer *informer);
bool informer_is_stopped(const struct informer *informer);
bool informer_has_synced(const struct informer *informer); /* listed, and every item applied to the store */
/* Whether what its store holds is what the server tells: it has synced, is not stopped, the server lets it go on, and
 * no transform has a hand in it. */
bool informer_is_faithful(const struct informer *informer);
/* Whether it leaves out nothing of an object but metadata.managedFields. */
bool informer_is_whole(const struct informer *informer);
/* Whether its objects say what it takes to put a finalizer on them, or to take one away, and lose nobody else's. Not
 * where a transform may leave that out. */
bool informer_keeps_finalizers(const struct informer *informer);
bool informer_leads(const struct informer *informer); /* the first of those that share its watch */
/* For reading: it is as before a relist or as after it. Another one after a change, once the kind is looked up. */
struct store *informer_store(struct informer *informer);
const char *informer_kind(const struct informer *informer); /* as asked until it is resolved; then the server's */
const char *
informer_label(const struct informer *informer); /* "v1/Pod", "apps/v1/Deployment shop app=web": for logs and tables */
void informer_rename(struct informer *informer, const char *label); /* for pools, before anybody has seen its label */
const struct resource *informer_resource(const struct informer *informer); /* NULL until resolved */
/* As asked for; NULL: none. */
const char *informer_label_selector(const struct informer *informer);
const char *informer_field_selector(const struct informer *informer);
const char *informer_api_version(const struct informer *informer); /* as asked */
const char *informer_plural(const struct informer *informer);      /* as asked; NULL where it was asked by kind */
size_t informer_namespace_count(const struct informer *informer);
const char *informer_namespace(const struct informer *informer, size_t i);
const char *informer_version(const struct informer *informer,
			     size_t i); /* resourceVersion of namespace i's reflector (0 when all); "" before */

/* The informer's row in the barrier's table, /status and wait_for_cache_sync's result. */
struct informer_report {
	const char *label, *api_version, *kind, *namespace; /* borrowed; namespace "" for all, "a,b" for several */
	bool started, synced;
	bool optional;   /* nobody waits for it */
	char state[160]; /* "connecting", "listing page 3", "streaming", "backing off, next try in 12 s", "no such
			    kind", "forbidden" …; "parked: …" where nobody waits for it to come (back), "stale: …"
			    where the server refuses to tell more */
	size_t objects, bytes;
	unsigned attempts;
	double next_try;    /* clock_now's scale; 0 while it is not waiting */
	int status;         /* last HTTP status of a failure; 0 */
	char message[1024]; /* why, with the missing RBAC rule for a 403; "" when nothing is wrong */
	struct reflector_counts counts;
	unsigned long duplicates, stale; /* events dropped since the store has that version, or a later one */
};
void informer_report(const struct informer *informer, struct informer_report *out);

/* Told when the informer syncs, makes progress or changes state; not for events. Embedded; removed before it is freed.
 */
struct informer_observer {
	struct list node;
	void (*on_change)(void *data);
	void *data;
};
void informer_observe(struct informer *informer, struct informer_observer *observer);
void informer_unobserve(struct informer_observer *observer);

/* Ends its requests at once and for good; the store and the listeners' queues stay as they are. For pools, whose
 * factories are an informer's users; handlers and barriers that still hold it don't keep it going. */
void informer_stop(struct informer *informer);

/* For listener.c only: attach to be given each notification from now on. */
void informer_attach(struct informer *informer, struct listener *listener);
void informer_detach(struct informer *informer, struct listener *listener);
/* The listener is to take what is stored with listener_walk, before anything newer. */
void informer_begin_walk(struct informer *informer, struct listener *listener);
void informer_settle(struct informer *informer); /* finishes walks, and what they wait for, at once */
/* The stored objects one by one, but each as handlers were told it, before own writes that the watch has yet to tell;
 * then those that such writes hide. */
struct object *informer_next_told(const struct informer *informer, struct store_cursor *cursor);
void informer_each_hidden(const struct informer *informer, store_visit_fn on_object, void *data);
struct loop *informer_loop(const struct informer *informer);

#endif
