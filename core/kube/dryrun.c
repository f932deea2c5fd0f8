#include "kube/dryrun.h"

#include <stdio.h>
#include <string.h>

#include "kube/status.h"

/* Leader election goes on in a dry run: it is how this process finds out whether it may act at all. */
static bool is_lease(const char *path)
{
	char version[64], namespace[256], resource[64];
	int end = -1;
	if (sscanf(path, "/apis/coordination.k8s.io/%63[^/]/namespaces/%255[^/]/%n", version, namespace, &end) == 2 &&
	    end > 0)
		path += end;
	else if (sscanf(path, "/apis/coordination.k8s.io/%63[^/]/%n", version, &end) == 1 && end > 0)
		path += end;
	else
		return false;
	return sscanf(path, "%63[^/]", resource) == 1 && !strcmp(resource, "leases");
}

bool dryrun_holds(const struct cluster *cluster, const char *path)
{
	return cluster->dry_run && !is_lease(path);
}

bool dryrun_is_in(const char *query)
{
	const char *at = query ? strstr(query, "dryRun=") : NULL;
	return at && (at == query || at[-1] == '&');
}

static bool says_all(struct json_slice list)
{
	struct json_iter iter = json_iterate(list);
	return json_type(list) == JSON_ARRAY && json_next(&iter) && json_string_equals(iter.value, "All");
}

/* The server reads the options of a DELETE from its body or else from the query, never from both; so a body has to say
 * it too. Of equal keys it takes the last. */
char *dryrun_body(const struct request_options *options)
{
	if (!options->body || strcmp(options->method, "DELETE") != 0)
		return NULL;
	const struct buf given = {.data = (char *)options->body, .length = options->body_length};
	struct json_slice object = status_body(&given);
	if (json_type(object) != JSON_OBJECT || says_all(json_get(object, "dryRun")))
		return NULL;
	struct json_iter members = json_iterate(object);
	bool empty = !json_next(&members);
	struct buf body;
	buf_init(&body, 0);
	buf_append(&body, object.data, object.length - 1);
	buf_append_format(&body, "%s\"dryRun\":[\"All\"]}", empty ? "" : ",");
	return buf_take(&body);
}
