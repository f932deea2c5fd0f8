#include "kube/discovery.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "kube/hint.h"
#include "kube/request.h"

ALLOC_TYPE(discovery_type, "discovery");
ALLOC_TYPE(lookup_type, "lookup");

#define ASK_SECONDS 30

/* Resources are never freed before the discovery, since look-ups gave them out; one that the server no longer names is
 * not live. */
struct made {
	struct resource resource;
	bool live;
};

struct group_version {
	struct discovery *discovery;
	char *api_version, group[254], version[64];
	struct made **made;
	size_t count;
	struct request *request; /* NULL when nothing is asked */
	struct list lookups;     /* waiting for its answer */
};

struct discovery {
	struct cluster *cluster;
	struct strmap group_versions; /* by apiVersion */
	struct hint *hint;
	struct list puzzled; /* look-ups that found nothing, waiting for near names */
};

/* In one of three states: in the lookups of its group version, in puzzled, or with its job posted. */
struct discovery_lookup {
	struct list node;
	struct loop_job job;
	char *api_version, *kind, *plural;
	discovery_fn on_found;
	void *data;
	const struct resource *found;
	struct err err; /* when nothing was found */
};

static void free_lookup(struct discovery_lookup *lookup)
{
	alloc_free(lookup->api_version);
	alloc_free(lookup->kind);
	alloc_free(lookup->plural);
	alloc_object_free(&lookup_type, lookup);
}

/* The job of a look-up whose outcome is known. */
static void deliver(void *data)
{
	struct discovery_lookup lookup = *(struct discovery_lookup *)data;
	free_lookup(data);
	lookup.on_found(lookup.data, lookup.found, lookup.found ? NULL : &lookup.err);
}

static bool matches(const struct resource *resource, const char *kind, const char *plural)
{
	return kind ? !strcmp(resource->kind, kind) : !strcmp(resource->plural, plural);
}

/* Where two resources share a kind, the one that can be watched is meant. */
static const struct resource *find_in(const struct group_version *at, const char *kind, const char *plural)
{
	const struct resource *found = NULL;
	for (size_t i = 0; i < at->count; i++) {
		const struct resource *resource = &at->made[i]->resource;
		if (!at->made[i]->live || !matches(resource, kind, plural))
			continue;
		if (!found || (resource->watchable && !found->watchable))
			found = resource;
	}
	return found;
}

static bool lists_verb(struct json_slice verbs, const char *verb)
{
	struct json_iter iter = json_iterate(verbs);
	while (json_next(&iter))
		if (json_string_equals(iter.value, verb))
			return true;
	return false;
}

static void free_made(struct made *made)
{
	alloc_free(made->resource.group);
	alloc_free(made->resource.version);
	alloc_free(made->resource.api_version);
	alloc_free(made->resource.kind);
	alloc_free(made->resource.plural);
	alloc_free(made);
}

/* One entry of an APIResourceList; NULL for a subresource and for what is no entry. */
static struct made *make(const struct group_version *at, struct json_slice entry)
{
	char *plural = json_string_copy(json_get(entry, "name")), *kind = json_string_copy(json_get(entry, "kind"));
	if (!plural || !kind || !*plural || !*kind || strchr(plural, '/')) {
		alloc_free(plural);
		alloc_free(kind);
		return NULL;
	}
	struct json_slice verbs = json_get(entry, "verbs");
	struct made *made = alloc_zero(sizeof(*made));
	made->live = true;
	made->resource = (struct resource){
	    .group = alloc_string(at->group),
	    .version = alloc_string(at->version),
	    .api_version = alloc_string(at->api_version),
	    .kind = kind,
	    .plural = plural,
	    .namespaced = json_bool(json_get(entry, "namespaced"), false),
	    .watchable = lists_verb(verbs, "list") && lists_verb(verbs, "watch"),
	};
	return made;
}

static bool is_same(const struct resource *a, const struct resource *b)
{
	return !strcmp(a->plural, b->plural) && !strcmp(a->kind, b->kind) && a->namespaced == b->namespaced &&
	       a->watchable == b->watchable;
}

/* made is taken. One that was known before stays the same pointer. */
static void add(struct group_version *at, struct made *made)
{
	for (size_t i = 0; i < at->count; i++) {
		if (!is_same(&at->made[i]->resource, &made->resource))
			continue;
		at->made[i]->live = true;
		free_made(made);
		return;
	}
	at->made = alloc_resize(at->made, (at->count + 1) * sizeof(*at->made));
	at->made[at->count++] = made;
}

static void forget(struct group_version *at)
{
	for (size_t i = 0; i < at->count; i++)
		at->made[i]->live = false;
}

static void learn(struct group_version *at, struct json_slice list)
{
	forget(at);
	struct json_iter iter = json_iterate(json_get(list, "resources"));
	while (json_next(&iter)) {
		struct made *made = make(at, iter.value);
		if (made)
			add(at, made);
	}
}

static void explain_absence(struct discovery *discovery, struct discovery_lookup *lookup)
{
	struct buf near;
	int code = lookup->err.code;
	buf_init(&near, 0);
	hint_near(discovery->hint, lookup->api_version, lookup->kind, lookup->plural, &near);
	err_set(&lookup->err, "NoKind", "the server has no %s \"%s\" in %s%s%s%s", lookup->kind ? "kind" : "resource",
		lookup->kind ? lookup->kind : lookup->plural, lookup->api_version, near.length ? "; did you mean " : "",
		buf_text(&near), near.length ? "?" : "");
	lookup->err.code = code;
	buf_fini(&near);
}

static void on_hint(void *data)
{
	struct discovery *discovery = data;
	struct list puzzled;
	list_init(&puzzled);
	list_move(&puzzled, &discovery->puzzled);
	for (struct list *node; (node = list_pop(&puzzled));) {
		struct discovery_lookup *lookup = LIST_ENTRY(node, struct discovery_lookup, node);
		explain_absence(discovery, lookup);
		loop_post(discovery->cluster->loop, &lookup->job);
	}
}

/* err: why the server could not be asked; NULL when it was. */
static void settle(struct group_version *at, const struct err *err, int code)
{
	struct discovery *discovery = at->discovery;
	for (struct list *node; (node = list_pop(&at->lookups));) {
		struct discovery_lookup *lookup = LIST_ENTRY(node, struct discovery_lookup, node);
		lookup->found = err ? NULL : find_in(at, lookup->kind, lookup->plural);
		if (err) {
			lookup->err = *err;
		} else if (!lookup->found) {
			lookup->err.code = code;
			list_add_tail(&discovery->puzzled, &lookup->node);
			continue;
		}
		loop_post(discovery->cluster->loop, &lookup->job);
	}
	if (!list_is_empty(&discovery->puzzled))
		hint_ask(discovery->hint);
}

static void on_answer(void *data, const struct err *err, struct json_slice body)
{
	struct group_version *at = data;
	at->request = NULL;
	if (!err)
		learn(at, body);
	else if (err->code == 404)
		forget(at);
	settle(at, err && err->code != 404 ? err : NULL, err ? err->code : 0);
}

static void ask(struct group_version *at)
{
	static const struct request_events events = {.on_done = on_answer};
	char *path = alloc_format("%s%s/%s", *at->group ? "/apis/" : "/api", at->group, at->version);
	at->request = request_start(at->discovery->cluster,
				    &(struct request_options){.method = "GET", .path = path, .timeout = ASK_SECONDS},
				    &events, at);
	alloc_free(path);
}

static struct group_version *get(const struct discovery *discovery, const char *api_version)
{
	return strmap_get(&discovery->group_versions, api_version, strlen(api_version));
}

/* NULL with err for what is no apiVersion. */
static struct group_version *get_or_add(struct discovery *discovery, const char *api_version, struct err *err)
{
	struct group_version *at = get(discovery, api_version);
	char group[254], version[64];
	if (at)
		return at;
	if (resource_split(api_version, group, version, err))
		return NULL;
	at = alloc_zero(sizeof(*at));
	at->discovery = discovery;
	at->api_version = alloc_string(api_version);
	memcpy(at->group, group, sizeof(group));
	memcpy(at->version, version, sizeof(version));
	list_init(&at->lookups);
	strmap_put(&discovery->group_versions, api_version, strlen(api_version), at);
	return at;
}

struct discovery_lookup *discovery_find(struct discovery *discovery, const char *api_version, const char *kind,
					const char *plural, discovery_fn on_found, void *data)
{
	struct discovery_lookup *lookup = alloc_object(&lookup_type, sizeof(*lookup));
	lookup->api_version = alloc_string(api_version);
	lookup->kind = alloc_string(kind);
	lookup->plural = alloc_string(kind ? NULL : plural);
	lookup->on_found = on_found;
	lookup->data = data;
	err_clear(&lookup->err);
	list_init(&lookup->node);
	loop_job_init(&lookup->job, deliver, lookup);
	struct group_version *at = get_or_add(discovery, api_version, &lookup->err);
	lookup->found = at ? find_in(at, kind, plural) : NULL;
	if (!at || lookup->found) {
		loop_post(discovery->cluster->loop, &lookup->job);
		return lookup;
	}
	list_add_tail(&at->lookups, &lookup->node);
	if (!at->request)
		ask(at);
	return lookup;
}

void discovery_cancel(struct discovery_lookup *lookup)
{
	list_remove(&lookup->node);
	loop_job_cancel(&lookup->job);
	free_lookup(lookup);
}

const struct resource *discovery_known(const struct discovery *discovery, const char *api_version, const char *kind,
				       const char *plural)
{
	const struct group_version *at = get(discovery, api_version);
	return at ? find_in(at, kind, plural) : NULL;
}

/* An answer that is on its way may be of before whatever made the caller ask again. */
void discovery_forget(struct discovery *discovery, const char *api_version)
{
	struct group_version *at = get(discovery, api_version);
	if (!at)
		return;
	forget(at);
	if (!at->request)
		return;
	request_cancel(at->request);
	at->request = NULL;
	if (!list_is_empty(&at->lookups))
		ask(at);
}

struct discovery *discovery_new(struct cluster *cluster)
{
	struct discovery *discovery = alloc_object(&discovery_type, sizeof(*discovery));
	discovery->cluster = cluster;
	strmap_init(&discovery->group_versions);
	list_init(&discovery->puzzled);
	discovery->hint = hint_new(cluster, on_hint, discovery);
	return discovery;
}

static void free_group_version(struct group_version *at)
{
	if (at->request)
		request_cancel(at->request);
	for (size_t i = 0; i < at->count; i++)
		free_made(at->made[i]);
	alloc_free(at->made);
	alloc_free(at->api_version);
	alloc_free(at);
}

void discovery_free(struct discovery *discovery)
{
	if (!discovery)
		return;
	const char *key;
	size_t cursor = 0, length;
	void *value;
	while (strmap_next(&discovery->group_versions, &cursor, &key, &length, &value))
		free_group_version(value);
	strmap_fini(&discovery->group_versions);
	hint_free(discovery->hint);
	alloc_object_free(&discovery_type, discovery);
}
