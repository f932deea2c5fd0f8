#include "kube/hint.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "kube/request.h"

#define FRESH_SECONDS 300
#define ASK_SECONDS 10
#define MOST_NAMED 3
#define FARTHEST 100 /* no likeness */

/* All groups with their kinds in one answer, since Kubernetes 1.26; older servers ignore it and name groups alone. */
#define ACCEPT                                                                                                         \
	"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                                        \
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

static const char *const roots[] = {"/api", "/apis"};
#define ROOTS (sizeof(roots) / sizeof(*roots))

struct kind {
	char *api_version, *kind, *plural;
};

struct root {
	struct hint *hint;
	struct request *request; /* NULL when nothing is asked */
	struct kind *kinds;
	size_t count;
};

struct hint {
	struct cluster *cluster;
	loop_fn on_ready;
	void *data;
	struct loop_job ready;
	struct root roots[ROOTS];
	double asked_at; /* 0: never */
};

static void forget(struct root *root)
{
	for (size_t i = 0; i < root->count; i++) {
		alloc_free(root->kinds[i].api_version);
		alloc_free(root->kinds[i].kind);
		alloc_free(root->kinds[i].plural);
	}
	alloc_free(root->kinds);
	root->kinds = NULL;
	root->count = 0;
}

static void learn_resource(struct root *root, const char *api_version, struct json_slice resource)
{
	char *kind = json_string_copy(json_get(json_get(resource, "responseKind"), "kind"));
	char *plural = json_string_copy(json_get(resource, "resource"));
	if (!kind || !plural) {
		alloc_free(kind);
		alloc_free(plural);
		return;
	}
	root->kinds = alloc_resize(root->kinds, (root->count + 1) * sizeof(*root->kinds));
	root->kinds[root->count++] = (struct kind){alloc_string(api_version), kind, plural};
}

static void learn_version(struct root *root, const char *group, struct json_slice version)
{
	char *word = json_string_copy(json_get(version, "version"));
	char *api_version = alloc_format("%s%s%s", group, *group ? "/" : "", word ? word : "");
	struct json_iter iter = json_iterate(json_get(version, "resources"));
	while (json_next(&iter))
		learn_resource(root, api_version, iter.value);
	alloc_free(word);
	alloc_free(api_version);
}

static void learn(struct root *root, struct json_slice list)
{
	struct json_iter groups = json_iterate(json_get(list, "items"));
	forget(root);
	while (json_next(&groups)) {
		char *group = json_string_copy(json_get(json_get(groups.value, "metadata"), "name"));
		struct json_iter versions = json_iterate(json_get(groups.value, "versions"));
		while (json_next(&versions))
			learn_version(root, group ? group : "", versions.value);
		alloc_free(group);
	}
}

static bool is_asking(const struct hint *hint)
{
	for (size_t i = 0; i < ROOTS; i++)
		if (hint->roots[i].request)
			return true;
	return false;
}

static void on_answer(void *data, const struct err *err, struct json_slice body)
{
	struct root *root = data;
	root->request = NULL;
	if (!err)
		learn(root, body);
	if (!is_asking(root->hint))
		loop_post(root->hint->cluster->loop, &root->hint->ready);
}

void hint_ask(struct hint *hint)
{
	static const struct request_events events = {.on_done = on_answer};
	if (is_asking(hint))
		return;
	if (hint->asked_at && clock_now() < hint->asked_at + FRESH_SECONDS) {
		loop_post(hint->cluster->loop, &hint->ready);
		return;
	}
	hint->asked_at = clock_now();
	for (size_t i = 0; i < ROOTS; i++) {
		const struct request_options options = {
		    .method = "GET", .path = roots[i], .accept = ACCEPT, .timeout = ASK_SECONDS};
		hint->roots[i].request = request_start(hint->cluster, &options, &events, &hint->roots[i]);
	}
}

static void on_ready(void *data)
{
	struct hint *hint = data;
	hint->on_ready(hint->data);
}

struct hint *hint_new(struct cluster *cluster, loop_fn fn, void *data)
{
	struct hint *hint = alloc_zero(sizeof(*hint));
	hint->cluster = cluster;
	hint->on_ready = fn;
	hint->data = data;
	loop_job_init(&hint->ready, on_ready, hint);
	for (size_t i = 0; i < ROOTS; i++)
		hint->roots[i].hint = hint;
	return hint;
}

void hint_free(struct hint *hint)
{
	loop_job_cancel(&hint->ready);
	for (size_t i = 0; i < ROOTS; i++) {
		if (hint->roots[i].request)
			request_cancel(hint->roots[i].request);
		forget(&hint->roots[i]);
	}
	alloc_free(hint);
}

/* How unlike two names are; FARTHEST when that can be no slip. */
static unsigned unlikeness(const char *given, const char *real)
{
	size_t distance = strcasecmp(given, real) ? suggest_distance(given, real) : 0;
	return distance > 2 || distance * 3 > strlen(given) ? FARTHEST : (unsigned)distance;
}

/* Lower is nearer: first the letters, then whether it is the same group version, then whether kind and plural were
 * confused. */
static unsigned rank(const struct kind *candidate, const char *api_version, const char *kind, const char *plural)
{
	const char *given = kind ? kind : plural, *same = kind ? candidate->kind : candidate->plural;
	if (!strcmp(candidate->api_version, api_version) && !strcmp(same, given))
		return FARTHEST; /* it has come since, or the names are of before it went */
	unsigned straight = unlikeness(given, same);
	unsigned crossed = unlikeness(given, kind ? candidate->plural : candidate->kind);
	unsigned best = crossed < straight ? crossed : straight;
	if (best == FARTHEST)
		return FARTHEST;
	return best * 4 + (strcmp(candidate->api_version, api_version) != 0) * 2 + (crossed < straight);
}

static void append_candidate(const struct kind *candidate, bool by_kind, struct buf *out)
{
	buf_append_format(out, "%s%s %s in %s", out->length ? " or " : "", by_kind ? "kind" : "resource",
			  by_kind ? candidate->kind : candidate->plural, candidate->api_version);
}

void hint_near(const struct hint *hint, const char *api_version, const char *kind, const char *plural, struct buf *out)
{
	unsigned best = FARTHEST, named = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < ROOTS; i++)
			for (size_t j = 0; j < hint->roots[i].count; j++) {
				const struct kind *candidate = &hint->roots[i].kinds[j];
				unsigned at = rank(candidate, api_version, kind, plural);
				if (pass == 0 && at < best)
					best = at;
				if (pass == 1 && at == best && best < FARTHEST && named++ < MOST_NAMED)
					append_candidate(candidate, kind != NULL, out);
			}
}
