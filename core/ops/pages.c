#include "ops/pages.h"

#include "base/alloc.h"
#include "base/log.h"
#include "ops/health.h"
#include "ops/metrics.h"
#include "ops/process.h"
#include "ops/status.h"

ALLOC_TYPE(pages_type, "pages");

/* Beyond what a script is allowed anyway. Short, as one answer of 503 does no harm: the kubelet's default liveness
 * probe restarts a container after three, 10 s apart. */
#define PATIENCE 5

static const struct server_page table[] = {
    {"/healthz", true, health_live}, {"/livez", true, health_live},     {"/readyz", false, health_ready},
    {"/status", false, status_page}, {"/metrics", false, metrics_page}, {NULL, false, NULL},
};

struct pages *pages_new(struct loop *loop, struct host *host, const char *address, double time_limit, struct err *err)
{
	struct pages *pages = alloc_object(&pages_type, sizeof(*pages));
	pages->loop = loop;
	pages->host = host;
	pages->patience = PATIENCE + time_limit;
	pages->process = process_new(host_metrics(host));
	pages->server = server_new(loop, address, table, pages, err);
	if (!pages->server) {
		pages_free(pages);
		return NULL;
	}
	char *port = alloc_format("%d", server_port(pages->server));
	log_info(LOG_FIELDS({"address", address}, {"port", port}), "listening");
	alloc_free(port);
	return pages;
}

void pages_free(struct pages *pages)
{
	if (!pages)
		return;
	if (pages->server)
		server_free(pages->server);
	process_free(pages->process);
	alloc_object_free(&pages_type, pages);
}
