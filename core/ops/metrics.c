#include "ops/metrics.h"

void metrics_page(void *data, pages_query query, void *request, struct server_answer *answer)
{
	(void)query, (void)request;
	const struct pages *pages = data;
	answer->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metric_write(host_metrics(pages->host), &answer->body);
}
