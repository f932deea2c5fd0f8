#include "net/http.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/http_private.h"

ALLOC_TYPE(http_type, "http");

#define DEFAULT_LIMIT ((size_t)64 << 20)
#define FIELDS_LIMIT ((size_t)64 << 10)
#define DEFAULT_CONNECT_TIMEOUT 30.0

static void http_free(void *object)
{
	struct http *http = object;
	curl_easy_cleanup(http->transfer.easy);
	curl_slist_free_all(http->headers);
	curl_slist_free_all(http->connect_to);
	http_tls_unref(http->tls);
	alloc_free(http->transfer.origin_name);
	http_backlog_free(http);
	buf_fini(&http->body);
	buf_fini(&http->warnings);
	buf_fini(&http->fields);
	alloc_object_free(&http_type, http);
}

/* No event follows. The memory stays to the end of the round, as this may run inside one of the request's own events.
 */
static void leave(struct http *http)
{
	struct loop *loop = mux_loop(http->mux);
	http->over = true;
	mux_remove(&http->transfer);
	loop_job_cancel(&http->job);
	loop_timer_stop(loop, &http->deadline);
	loop_timer_stop(loop, &http->connect_deadline);
	loop_free_later(loop, http_free, http);
}

void http_cancel(struct http *http)
{
	if (!http->over)
		leave(http);
}

struct visit {
	void (*fn)(void *data, const struct http_progress *progress);
	void *data;
};

static void visit_transfer(void *data, struct mux_transfer *transfer)
{
	const struct visit *visit = data;
	const struct http *http = LIST_ENTRY(transfer, struct http, transfer);
	struct http_progress progress = {
	    .local_port = http->attempt.local_port, .headed = http->head_complete, .received = http->attempt.received};
	curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &progress.url);
	visit->fn(visit->data, &progress);
}

void http_each(const struct mux *mux, void (*fn)(void *data, const struct http_progress *progress), void *data)
{
	struct visit visit = {fn, data};
	mux_each(mux, visit_transfer, &visit);
}

static void tell_warnings(struct http *http)
{
	if (!http->events.on_warning)
		return;
	const char *text = buf_text(&http->warnings), *end = text + http->warnings.length;
	for (; text < end && !http->over; text += strlen(text) + 1)
		http->events.on_warning(http->data, text);
}

static void tell_head(struct http *http)
{
	if (!http->head_complete || http->head_told)
		return;
	http->head_told = true;
	if (http->events.on_head)
		http->events.on_head(http->data, &http->head);
	tell_warnings(http);
}

/* True when all that came has been told. */
static bool tell_chunk(struct http *http)
{
	if (http->over || list_is_empty(&http->backlog))
		return true;
	struct http_block *block = http_backlog_take(http);
	if (http->events.on_chunk)
		http->events.on_chunk(http->data, block->bytes, block->length);
	http_backlog_give(http, block);
	if (http->over)
		return true;
	if (!list_is_empty(&http->backlog)) {
		loop_post(mux_loop(http->mux), &http->job);
		return false;
	}
	mux_release(&http->transfer);
	return true;
}

static void end(struct http *http)
{
	enum http_failure failure = http_explain(http);
	struct http_result result = {.failure = failure,
				     .head = http->head,
				     .message = failure ? http->message : NULL,
				     .sent = http_was_sent(http),
				     .body = &http->body,
				     .fields = &http->fields};
	leave(http);
	http->events.on_done(http->data, &result);
}

static void begin_connecting(struct http *http)
{
	mux_add(http->mux, &http->transfer);
	loop_timer_start(mux_loop(http->mux), &http->connect_deadline, http->connect_timeout);
}

static void begin_again(struct http *http)
{
	mux_remove(&http->transfer);
	http->sent_before = http_was_sent(http);
	http->attempt = (struct http_attempt){0};
	http->attempts++;
	http->ended = false;
	http->code = CURLE_OK;
	*http->curl_message = '\0';
	begin_connecting(http);
}

static void on_job(void *data)
{
	struct http *http = data;
	tell_head(http);
	if (!tell_chunk(http) || http->over || !http->ended)
		return;
	if (http_may_repeat(http))
		begin_again(http);
	else
		end(http);
}

static void on_end(struct mux_transfer *transfer, CURLcode code)
{
	struct http *http = LIST_ENTRY(transfer, struct http, transfer);
	http->ended = true;
	http->code = code;
	loop_post(mux_loop(http->mux), &http->job);
}

/* What has come already is told first; and an end that has come beats a deadline that passed in the same turn. */
static void time_out(struct http *http, const char *what, double seconds)
{
	if (!http->ended) {
		http->failure = HTTP_TIMEOUT;
		http->ended = true;
		snprintf(http->message, sizeof(http->message), "no %s within %g s", what, seconds);
	}
	on_job(http);
}

static void on_deadline(void *data)
{
	struct http *http = data;
	http_avoid_silent(http);
	time_out(http, http->streamed ? "end of the answer" : "answer", http->timeout);
}

static void on_connect_deadline(void *data)
{
	struct http *http = data;
	time_out(http, "connection", http->connect_timeout);
}

static struct http *http_new(struct mux *mux, const struct http_request *request, const struct http_events *events,
			     void *data)
{
	struct http *http = alloc_object(&http_type, sizeof(*http));
	http->mux = mux;
	http->events = *events;
	http->data = data;
	http->streamed = http->transfer.endless = request->stream;
	http->limit = request->limit ? request->limit : DEFAULT_LIMIT;
	http->timeout = request->timeout;
	http->connect_timeout = request->connect_timeout > 0 ? request->connect_timeout : DEFAULT_CONNECT_TIMEOUT;
	http->tls = request->tls ? http_tls_ref(request->tls) : NULL;
	http->last_byte_at = clock_now();
	http->attempts = 1;
	http->head.retry_after = -1;
	http->transfer.easy = curl_easy_init();
	http->transfer.on_end = on_end;
	list_init(&http->transfer.node);
	loop_job_init(&http->job, on_job, http);
	loop_timer_init(&http->deadline, on_deadline, http);
	loop_timer_init(&http->connect_deadline, on_connect_deadline, http);
	buf_init(&http->body, http->limit);
	list_init(&http->backlog);
	buf_init(&http->warnings, 0);
	buf_init(&http->fields, FIELDS_LIMIT);
	http->keeps_fields = request->fields;
	return http;
}

struct http *http_start(struct mux *mux, const struct http_request *request, const struct http_events *events,
			void *data)
{
	struct http *http = http_new(mux, request, events, data);
	if (http_prepare(http, request)) {
		http->failure = HTTP_REFUSED;
		http->ended = true;
		loop_post(mux_loop(mux), &http->job);
		return http;
	}
	if (http->timeout > 0)
		loop_timer_start(mux_loop(mux), &http->deadline, http->timeout);
	begin_connecting(http);
	return http;
}
