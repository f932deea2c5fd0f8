#include "ops/health.h"

#include "base/clock.h"
#include "script/stall.h"

void health_live(void *data, pages_query query, void *request, struct server_answer *answer)
{
	(void)query, (void)request;
	const struct pages *pages = data;
	double since = loop_busy_since(pages->loop), busy = since > 0 ? clock_now() - since : 0;
	if (busy <= pages->patience) {
		buf_append_text(&answer->body, "ok\n");
		return;
	}
	char stall[1024];
	bool named = stall_read(stall, sizeof(stall));
	answer->status = 503;
	buf_append_format(&answer->body, "the event loop has been stuck for %.0f s%s%s\n", busy, named ? ": " : "",
			  stall);
}

void health_ready(void *data, pages_query query, void *request, struct server_answer *answer)
{
	const struct pages *pages = data;
	bool ready = host_is_ready(pages->host);
	if (!ready)
		answer->status = 503;
	if (!ready || query(request, "verbose"))
		host_readiness(pages->host, &answer->body);
	else
		buf_append_text(&answer->body, "ok\n");
}
