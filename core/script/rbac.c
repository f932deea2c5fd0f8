#include "script/rbac.h"

#include <string.h>

#include "base/alloc.h"
#include "cache/informer.h"
#include "kube/access.h"
#include "kube/discovery.h"
#include "net/loop.h"
#include "script/host_private.h"
#include "script/reconciler.h"
#include "script/script.h"

ALLOC_TYPE(rbac_type, "rbac");

/* A kind that scripts ask for. */
struct look {
	struct rbac *rbac;
	const char *api_version, *kind, *plural; /* as asked; kind or plural is NULL; the informer's own */
	bool optional;                           /* for all that ask */
	struct discovery_lookup *lookup;         /* while it is asked */
	const struct resource *found;
	struct err err;
};

/* A right that is asked for. */
struct review {
	struct rbac *rbac;
	struct json_slice right;
	struct access *access; /* while it is asked */
	bool allowed;
};

struct rbac {
	struct host *host;
	struct audit *audit;
	struct buf scripts, lease; /* JSON, as rbac.lua takes them */
	struct buf rights;         /* JSON, of the reviews */
	struct look *looks;
	size_t look_count;
	struct review *reviews;
	size_t review_count;
	size_t waiting;     /* looks or reviews */
	struct err failure; /* of a review, the first; message "" for none */
	rbac_fn on_done;
	void *data;
	struct loop_job done;
};

/* --- what scripts registered --- */

static void append_text(struct buf *out, const char *name, const char *value)
{
	buf_append_format(out, "\"%s\":", name);
	buf_append_json_string(out, value, strlen(value));
}

/* Where an array goes on. */
static void begin_item(struct buf *out)
{
	buf_append_text(out, out->data[out->length - 1] == '[' ? "{" : ",{");
}

static void append_kind(struct buf *out, const char *api_version, const char *kind, const char *plural)
{
	append_text(out, "apiVersion", api_version);
	buf_append_char(out, ',');
	append_text(out, kind ? "kind" : "resource", kind ? kind : plural);
}

static const char *kind_of(const struct informer *informer)
{
	return informer_plural(informer) ? NULL : informer_kind(informer);
}

static void append_informer(struct buf *out, const struct informer *informer, bool optional)
{
	begin_item(out);
	append_kind(out, informer_api_version(informer), kind_of(informer), informer_plural(informer));
	buf_append_text(out, ",\"namespaces\":[");
	for (size_t i = 0; i < informer_namespace_count(informer); i++) {
		const char *namespace = informer_namespace(informer, i);
		buf_append_text(out, i ? "," : "");
		buf_append_json_string(out, namespace, strlen(namespace));
	}
	buf_append_format(out, "]%s}", optional ? ",\"optional\":true" : "");
}

static struct look *find_look(struct rbac *rbac, const struct informer *informer)
{
	const char *kind = kind_of(informer), *name = kind ? kind : informer_plural(informer);
	for (size_t i = 0; i < rbac->look_count; i++) {
		struct look *look = &rbac->looks[i];
		if (!strcmp(look->api_version, informer_api_version(informer)) && !look->kind == !kind &&
		    !strcmp(look->kind ? look->kind : look->plural, name))
			return look;
	}
	return NULL;
}

static void add_look(struct rbac *rbac, const struct informer *informer, bool optional)
{
	struct look *look = find_look(rbac, informer);
	if (look) {
		look->optional = look->optional && optional;
		return;
	}
	rbac->looks = alloc_resize(rbac->looks, (rbac->look_count + 1) * sizeof(*rbac->looks));
	rbac->looks[rbac->look_count++] = (struct look){.rbac = rbac,
							.api_version = informer_api_version(informer),
							.kind = kind_of(informer),
							.plural = informer_plural(informer),
							.optional = optional};
}

struct member {
	struct rbac *rbac;
	const struct factory *factory;
};

static void add_informer(void *data, struct informer *informer)
{
	const struct member *member = data;
	bool optional = !factory_needs(member->factory, informer);
	append_informer(&member->rbac->scripts, informer, optional);
	add_look(member->rbac, informer, optional);
}

static void add_informers(struct rbac *rbac, const struct script *script)
{
	LIST_EACH (&script->factories, node) {
		struct member member = {rbac, LIST_ENTRY(node, struct script_factory, node)->factory};
		factory_each((struct factory *)member.factory, add_informer, &member);
	}
}

static void add_finalizers(struct rbac *rbac, const struct script *script)
{
	LIST_EACH (&script->reconcilers, node) {
		const struct reconciler *reconciler = reconciler_of_node(node);
		if (reconciler_finalizes(reconciler))
			append_informer(&rbac->scripts, reconciler_primary(reconciler), false);
	}
}

static void add_script(struct rbac *rbac, const struct script *script)
{
	struct buf *out = &rbac->scripts;
	begin_item(out);
	append_text(out, "path", script->path);
	buf_append_char(out, ',');
	append_text(out, "folder", script->folder);
	buf_append_format(out, ",\"leader\":%s,\"needs\":[%s],\"informers\":[",
			  script_has_leader(script) ? "true" : "false", buf_text(&script->needs));
	add_informers(rbac, script);
	buf_append_text(out, "],\"finalizers\":[");
	add_finalizers(rbac, script);
	buf_append_text(out, "]}");
}

static void add_lease(struct rbac *rbac, const struct rbac_lease *lease)
{
	buf_append_char(&rbac->lease, '{');
	append_text(&rbac->lease, "namespace", lease->namespace);
	buf_append_char(&rbac->lease, ',');
	append_text(&rbac->lease, "name", lease->name);
	buf_append_format(&rbac->lease, ",\"wanted\":%s}", lease->wanted ? "true" : "false");
}

static bool is_absent(const struct look *look)
{
	return !strcmp(look->err.reason, "NoKind");
}

static void append_resolved(const struct rbac *rbac, struct buf *out)
{
	buf_append_char(out, '[');
	for (const struct look *look = rbac->looks; look < rbac->looks + rbac->look_count; look++) {
		if (!look->found && !is_absent(look))
			continue;
		begin_item(out);
		append_kind(out, look->api_version, look->kind, look->plural);
		if (look->found) {
			buf_append_char(out, ',');
			append_text(out, "plural", look->found->plural);
			buf_append_format(out, ",\"namespaced\":%s", look->found->namespaced ? "true" : "false");
		}
		buf_append_char(out, '}');
	}
	buf_append_char(out, ']');
}

/* rbac.lua's argument; owned by the caller. */
static char *input_of(const struct rbac *rbac)
{
	struct buf out;
	buf_init(&out, 0);
	buf_append_format(&out, "{\"scripts\":%s,\"lease\":%s,\"resolved\":", buf_text(&rbac->scripts),
			  buf_text(&rbac->lease));
	append_resolved(rbac, &out);
	buf_append_char(&out, '}');
	return buf_take(&out);
}

/* --- making and freeing --- */

static void on_done(void *data)
{
	struct rbac *rbac = data;
	rbac->on_done(rbac->data);
}

struct rbac *rbac_new(struct host *host, struct audit *audit, const struct rbac_lease *lease)
{
	struct rbac *rbac = alloc_object(&rbac_type, sizeof(*rbac));
	struct buf *bufs[] = {&rbac->scripts, &rbac->lease, &rbac->rights};
	for (size_t i = 0; i < sizeof(bufs) / sizeof(*bufs); i++)
		buf_init(bufs[i], 0);
	rbac->host = host;
	rbac->audit = audit;
	loop_job_init(&rbac->done, on_done, rbac);
	buf_append_char(&rbac->scripts, '[');
	LIST_EACH (host_scripts(host), node)
		add_script(rbac, LIST_ENTRY(node, struct script, node));
	buf_append_char(&rbac->scripts, ']');
	add_lease(rbac, lease);
	return rbac;
}

void rbac_free(struct rbac *rbac)
{
	if (!rbac)
		return;
	loop_job_cancel(&rbac->done);
	for (size_t i = 0; i < rbac->look_count; i++)
		if (rbac->looks[i].lookup)
			discovery_cancel(rbac->looks[i].lookup);
	for (size_t i = 0; i < rbac->review_count; i++)
		if (rbac->reviews[i].access)
			access_cancel(rbac->reviews[i].access);
	alloc_free(rbac->looks);
	alloc_free(rbac->reviews);
	buf_fini(&rbac->scripts);
	buf_fini(&rbac->lease);
	buf_fini(&rbac->rights);
	alloc_object_free(&rbac_type, rbac);
}

/* --- questions to the cluster --- */

static void begin(struct rbac *rbac, size_t count, rbac_fn fn, void *data)
{
	rbac->waiting = count;
	rbac->on_done = fn;
	rbac->data = data;
	if (!count)
		loop_post(host_loop(rbac->host), &rbac->done);
}

static void note_answer(struct rbac *rbac)
{
	if (!--rbac->waiting)
		loop_post(host_loop(rbac->host), &rbac->done);
}

static void on_found(void *data, const struct resource *resource, const struct err *err)
{
	struct look *look = data;
	look->lookup = NULL;
	look->found = resource;
	if (err)
		look->err = *err;
	note_answer(look->rbac);
}

void rbac_look_up(struct rbac *rbac, rbac_fn fn, void *data)
{
	struct discovery *discovery = host_cluster(rbac->host)->discovery;
	begin(rbac, rbac->look_count, fn, data);
	for (size_t i = 0; i < rbac->look_count; i++) {
		struct look *look = &rbac->looks[i];
		look->lookup = discovery_find(discovery, look->api_version, look->kind, look->plural, on_found, look);
	}
}

static void on_answer(void *data, bool allowed, const struct err *err)
{
	struct review *review = data;
	review->access = NULL;
	review->allowed = allowed;
	if (err && !*review->rbac->failure.message)
		review->rbac->failure = *err;
	note_answer(review->rbac);
}

static void ask(struct review *review)
{
	static const char *const names[] = {"verb", "group", "resource", "namespace", "name"};
	enum { COUNT = sizeof(names) / sizeof(*names) };
	char *texts[COUNT];
	for (int i = 0; i < COUNT; i++) {
		texts[i] = json_string_copy(json_get(review->right, names[i]));
		if (!texts[i])
			texts[i] = alloc_string("");
	}
	const struct access_attributes attributes = {texts[0], texts[1], texts[2], texts[3], texts[4]};
	review->access = access_ask(host_cluster(review->rbac->host), &attributes, on_answer, review);
	for (int i = 0; i < COUNT; i++)
		alloc_free(texts[i]);
}

static void add_reviews(struct rbac *rbac)
{
	struct json_iter iter = json_iterate((struct json_slice){rbac->rights.data, rbac->rights.length});
	while (json_next(&iter)) {
		rbac->reviews = alloc_resize(rbac->reviews, (rbac->review_count + 1) * sizeof(*rbac->reviews));
		rbac->reviews[rbac->review_count++] = (struct review){.rbac = rbac, .right = iter.value};
	}
}

int rbac_review(struct rbac *rbac, rbac_fn fn, void *data, struct err *err)
{
	char *input = input_of(rbac);
	int result = audit_ask(rbac->audit, "rights", (const char *const[]){input}, 1, &rbac->rights, err);
	alloc_free(input);
	if (result)
		return -1;
	add_reviews(rbac);
	begin(rbac, rbac->review_count, fn, data);
	for (size_t i = 0; i < rbac->review_count; i++)
		ask(&rbac->reviews[i]);
	return 0;
}

/* --- what is told --- */

bool rbac_is_answered(const struct rbac *rbac)
{
	for (const struct look *look = rbac->looks; look < rbac->looks + rbac->look_count; look++)
		if (!look->found && !is_absent(look))
			return false;
	return true;
}

/* One that can't be reached fails each question in the same words. */
static bool is_told(const struct buf *out, size_t from, const char *message)
{
	return strstr(buf_text(out) + from, message);
}

bool rbac_tell_kinds(const struct rbac *rbac, struct buf *out)
{
	size_t from = out->length;
	for (const struct look *look = rbac->looks; look < rbac->looks + rbac->look_count; look++)
		if (!look->found && *look->err.message && !(look->optional && is_absent(look)) &&
		    !is_told(out, from, look->err.message))
			buf_append_format(out, "%s\n", look->err.message);
	return out->length > from;
}

int rbac_tell_missing(const struct rbac *rbac, struct buf *out, struct err *err)
{
	struct buf missing;
	if (*rbac->failure.message) {
		*err = rbac->failure;
		return -1;
	}
	buf_init(&missing, 0);
	buf_append_char(&missing, '[');
	for (const struct review *review = rbac->reviews; review < rbac->reviews + rbac->review_count; review++) {
		if (review->allowed)
			continue;
		buf_append_text(&missing, missing.length > 1 ? "," : "");
		buf_append(&missing, review->right.data, review->right.length);
	}
	buf_append_char(&missing, ']');
	int result = audit_ask(rbac->audit, "missing", (const char *const[]){buf_text(&missing)}, 1, out, err);
	buf_fini(&missing);
	return result;
}

int rbac_yaml(const struct rbac *rbac, const char *namespace, const char *account, struct buf *out, struct err *err)
{
	struct buf subject;
	char *input = input_of(rbac);
	buf_init(&subject, 0);
	buf_append_char(&subject, '{');
	append_text(&subject, "namespace", namespace);
	buf_append_char(&subject, ',');
	append_text(&subject, "name", account);
	buf_append_char(&subject, '}');
	int result = audit_ask(rbac->audit, "yaml", (const char *const[]){input, buf_text(&subject)}, 2, out, err);
	buf_fini(&subject);
	alloc_free(input);
	return result;
}
