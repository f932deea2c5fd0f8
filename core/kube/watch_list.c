#include "kube/watch_list.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strmap.h"
#include "kube/request.h"

ALLOC_TYPE(watch_list_type, "watch_list");

#define ASK_EVERY 60.0
#define ASK_TIMEOUT 10.0

struct watch_list {
	struct cluster *cluster;
	struct strmap refused; /* "v1 pods" to any pointer that is not NULL */
	char *server_version;  /* gitVersion at the first refusal; NULL: not known */
	struct request *request;
	double asked_at; /* clock_now's scale; 0: never */
};

struct watch_list *watch_list_new(struct cluster *cluster)
{
	struct watch_list *watch_list = alloc_object(&watch_list_type, sizeof(*watch_list));
	watch_list->cluster = cluster;
	strmap_init(&watch_list->refused);
	return watch_list;
}

void watch_list_free(struct watch_list *watch_list)
{
	request_cancel(watch_list->request);
	strmap_fini(&watch_list->refused);
	alloc_free(watch_list->server_version);
	alloc_object_free(&watch_list_type, watch_list);
}

static char *key_of(const struct resource *resource)
{
	return alloc_format("%s %s", resource->api_version, resource->plural);
}

/* The version at the first refusal is compared with later ones. */
static void note_version(struct watch_list *watch_list, char *version)
{
	if (!watch_list->server_version) {
		watch_list->server_version = version;
		return;
	}
	if (strcmp(watch_list->server_version, version) != 0) {
		log_info(NULL, "the server is %s now, and was %s: initial states are asked for as streams again",
			 version, watch_list->server_version);
		strmap_clear(&watch_list->refused);
	}
	alloc_free(watch_list->server_version);
	watch_list->server_version = version;
}

/* A server that does not say its version leaves all as it is. */
static void on_version(void *data, const struct err *err, struct json_slice body)
{
	struct watch_list *watch_list = data;
	watch_list->request = NULL;
	char *version = err ? NULL : json_string_copy(json_get(body, "gitVersion"));
	if (version)
		note_version(watch_list, version);
}

static void ask_version(struct watch_list *watch_list)
{
	static const struct request_events events = {.on_done = on_version};
	const struct request_options options = {.method = "GET", .path = "/version", .timeout = ASK_TIMEOUT};
	double now = clock_now();
	if (watch_list->request || (watch_list->asked_at > 0 && now - watch_list->asked_at < ASK_EVERY))
		return;
	watch_list->asked_at = now;
	watch_list->request = request_start(watch_list->cluster, &options, &events, watch_list);
}

bool watch_list_works(struct watch_list *watch_list, const struct resource *resource)
{
	char *key = key_of(resource);
	bool refused = strmap_get(&watch_list->refused, key, strlen(key)) != NULL;
	alloc_free(key);
	if (refused)
		ask_version(watch_list);
	return !refused;
}

void watch_list_refused(struct watch_list *watch_list, const struct resource *resource)
{
	char *key = key_of(resource);
	strmap_put(&watch_list->refused, key, strlen(key), watch_list);
	alloc_free(key);
	if (!watch_list->server_version)
		ask_version(watch_list);
}
