#include "ops/status.h"

void status_page(void *data, pages_query query, void *request, struct server_answer *answer)
{
	(void)query, (void)request;
	const struct pages *pages = data;
	answer->content_type = "application/json";
	host_status_json(pages->host, &answer->body);
}
