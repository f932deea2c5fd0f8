/* What became of each attempt. libcurl tells three things only through its debug texts: that the server refused a
 * stream, that it said GOAWAY and up to which stream, and which stream a request has. A libcurl that words them
 * differently costs a repetition, never a second write: without the texts an attempt counts as one that may have been
 * processed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_private.h"

bool http_same_connection(const struct http_attempt *a, const struct http_attempt *b)
{
	return a->local_port && a->local_port == b->local_port && strcmp(a->local_ip, b->local_ip) == 0;
}

/* The text comes to whichever request was reading the connection. It holds for all of that connection's. */
static void note_goaway(struct http *http, unsigned long last_stream)
{
	if (!http->transfer.pool || !http->attempt.local_port)
		return;
	struct list *siblings = mux_siblings(&http->transfer);
	LIST_EACH (siblings, node) {
		struct http *sibling = LIST_ENTRY(node, struct http, transfer.node);
		if (!http_same_connection(&http->attempt, &sibling->attempt) || sibling->head_begun)
			continue;
		if (sibling->attempt.stream > 0 && (unsigned long)sibling->attempt.stream > last_stream)
			sibling->attempt.refused = true;
	}
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static void read_text(struct http *http, const char *text)
{
	const char *last_stream;
	if (starts_with(text, "Using Stream ID: "))
		http->attempt.stream = strtol(text + strlen("Using Stream ID: "), NULL, 10);
	else if (starts_with(text, "REFUSED_STREAM, retrying"))
		http->attempt.refused = true;
	else if (starts_with(text, "Connection died"))
		http->attempt.local_port = 0; /* what is read from now on is another connection */
	else if (strstr(text, "GOAWAY") && (last_stream = strstr(text, "last_stream=")))
		note_goaway(http, strtoul(last_stream + strlen("last_stream="), NULL, 10));
}

int http_on_debug(CURL *easy, curl_infotype type, char *bytes, size_t size, void *data)
{
	(void)easy;
	struct http *http = data;
	if (type == CURLINFO_TEXT) {
		char text[128];
		snprintf(text, sizeof(text), "%.*s", (int)size, bytes);
		read_text(http, text);
	} else if ((type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT) && size && http->attempt.connected) {
		http->attempt.sent = true; /* before it is connected, this is talk with a proxy */
	}
	return 0;
}

static bool was_unprocessed(const struct http_attempt *attempt)
{
	return !attempt->sent || attempt->refused;
}

static bool begin_attempt(struct http *http)
{
	if (!http->attempt.connected)
		return true;
	if (!was_unprocessed(&http->attempt) && !http->repeatable)
		return false;
	http->sent_before |= !was_unprocessed(&http->attempt);
	http->attempt = (struct http_attempt){0};
	return ++http->attempts <= HTTP_ATTEMPTS;
}

/* Also the gate for the attempts that libcurl begins by itself: it would repeat a write on a connection that died after
 * the write was sent. */
int http_on_connected(void *data, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
	(void)peer_ip, (void)peer_port;
	struct http *http = data;
	if (!begin_attempt(http))
		return CURL_PREREQFUNC_ABORT;
	struct http_attempt *attempt = &http->attempt;
	attempt->connected = true;
	snprintf(attempt->local_ip, sizeof(attempt->local_ip), "%s", local_ip);
	attempt->local_port = local_port;
	loop_timer_stop(mux_loop(http->mux), &http->connect_deadline);
	mux_connected(&http->transfer);
	return CURL_PREREQFUNC_OK;
}

/* Codes by which libcurl says that a connection broke. CURLE_OK without a head is one: on a connection that others
 * still use, 7.88.1 drops its own finding that nothing came. CURLE_COULDNT_CONNECT is what its own second attempt ends
 * with. */
static bool is_broken_connection(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_COULDNT_CONNECT:
		return true;
	default:
		return false;
	}
}

static bool was_reused(const struct http *http)
{
	long connects = 0;
	curl_easy_getinfo(http->transfer.easy, CURLINFO_NUM_CONNECTS, &connects);
	return connects == 0 && http->attempt.connected;
}

bool http_may_repeat(const struct http *http)
{
	if (http->head_begun || http->failure || http->attempts >= HTTP_ATTEMPTS || !is_broken_connection(http->code))
		return false;
	if (http->attempt.refused)
		return true;
	return was_reused(http) && (http->repeatable || !http->attempt.sent);
}

bool http_was_sent(const struct http *http)
{
	return http->sent_before || !was_unprocessed(&http->attempt);
}

static enum http_failure failure_of(const struct http *http)
{
	if (http->attempt.refused && http->code)
		return HTTP_BROKEN;
	switch (http->code) {
	case CURLE_OK:
		return http->head_complete ? HTTP_NONE : HTTP_BROKEN;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_PROXY:
	case CURLE_SSL_CONNECT_ERROR:
		return HTTP_CONNECT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return HTTP_UNTRUSTED;
	case CURLE_OPERATION_TIMEDOUT:
		return HTTP_TIMEOUT;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_BAD_FUNCTION_ARGUMENT:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return http->attempt.connected ? HTTP_BROKEN : HTTP_REFUSED;
	default:
		return http->attempt.connected ? HTTP_BROKEN : HTTP_CONNECT;
	}
}

static const char *text_of(const struct http *http)
{
	if (http->attempt.refused)
		return "the server refused the request each time without processing it";
	if (http->code == CURLE_ABORTED_BY_CALLBACK)
		return "the connection was lost after the request was sent";
	if (http->starved && http->code == CURLE_COULDNT_CONNECT)
		return "too many files are open; raise the limit (ulimit -n)";
	if (*http->curl_message)
		return http->curl_message;
	return http->code ? curl_easy_strerror(http->code) : "the connection was closed before an answer came";
}

enum http_failure http_explain(struct http *http)
{
	if (http->failure)
		return http->failure;
	enum http_failure failure = failure_of(http);
	if (failure == HTTP_TIMEOUT)
		snprintf(http->message, sizeof(http->message), "no connection within %g s", http->connect_timeout);
	else if (failure)
		snprintf(http->message, sizeof(http->message), "%s", text_of(http));
	return failure;
}
