#include "kube/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/dryrun.h"
#include "kube/elector.h"
#include "kube/status.h"
#include "kube/warning.h"
#include "net/http.h"

ALLOC_TYPE(request_type, "request");

#define MOST_WAITS 10
#define MOST_RESENT 3
#define DEFAULT_LIMIT ((size_t)64 << 20) /* http's */
#define SHORTEST 0.001                   /* a time-out of 0 would be none at all */

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "an architecture without a name"
#endif

#define USER_AGENT "User-Agent: perilune/" PERILUNE_VERSION " (linux/" ARCHITECTURE ")"

/* A request is in one of five states: waiting for a slot (node is in cluster->waiting), waiting for credentials
 * (credentials.node is in a list), under way (http is not NULL), obeying Retry-After (wait is active), dead. A slot is
 * held only while under way or waiting for credentials. */
struct request {
	struct cluster *cluster;
	struct request_events events;
	void *data;
	char *method, *path, *url, *accept, *content_type, *script, *body;
	size_t body_length, limit;
	bool stream, counted, urgent, write;
	double started_at;        /* clock_now's scale, as deadline is */
	double timeout, deadline; /* both 0 for none; the latter on clock_now's scale */

	struct http *http;
	struct list node;
	struct list leader_node; /* in cluster->leaders, when only the leader may send it */
	struct loop_job fenced;  /* on_fenced waits */
	struct exec_wait credentials;
	struct loop_timer wait, expiry; /* expiry is active while http, which knows the deadline itself, is NULL */
	bool slot;
	bool answered;       /* the head of the present try's answer has come, and is counted */
	bool repeated;       /* after a 401 */
	bool maybe_happened; /* an earlier try of this write has an unknown outcome */
	bool dead;
	unsigned waits, resent;
	unsigned generation; /* of the credentials that were sent */
};

static void send_request(struct request *request);

void request_query_add(struct buf *query, const char *name, const char *value)
{
	const char *const parts[] = {query->length ? "&" : "", name, "=", value};
	for (size_t i = 0; i < 4; i++) {
		bool plain = i == 0 || i == 2;
		for (const char *at = parts[i]; *at; at++) {
			unsigned char c = (unsigned char)*at;
			bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
					  (c && strchr("-._~", c));
			if (plain || unreserved)
				buf_append_char(query, (char)c);
			else
				buf_append_format(query, "%%%02X", (unsigned)c);
		}
	}
}

static bool is_write(const char *method)
{
	return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 && strcmp(method, "OPTIONS") != 0;
}

static void take_body(struct request *request, const struct request_options *options)
{
	request->body = dryrun_holds(request->cluster, options->path) ? dryrun_body(options) : NULL;
	request->body_length = request->body ? strlen(request->body) : options->body_length;
	if (!request->body && options->body)
		request->body = alloc_text(options->body, options->body_length);
}

static char *make_url(const struct cluster *cluster, const struct request_options *options)
{
	struct buf url;
	const char *query = options->query && *options->query ? options->query : NULL;
	buf_init(&url, 0);
	buf_append_format(&url, "%s%s", cluster->config->server, options->path);
	char sign = strchr(options->path, '?') ? '&' : '?';
	if (query)
		buf_append_format(&url, "%c%s", sign, query);
	if (is_write(options->method) && dryrun_holds(cluster, options->path) && !dryrun_is_in(query))
		buf_append_format(&url, "%cdryRun=All", query ? '&' : sign);
	return buf_take(&url);
}

static void free_request(void *object)
{
	struct request *request = object;
	alloc_free(request->method);
	alloc_free(request->path);
	alloc_free(request->url);
	alloc_free(request->accept);
	alloc_free(request->content_type);
	alloc_free(request->script);
	if (request->body)
		explicit_bzero(request->body, request->body_length); /* may be a Secret */
	alloc_free(request->body);
	alloc_object_free(&request_type, request);
}

/* Gives the slot to the request that has waited longest. */
static void release(struct request *request)
{
	struct cluster *cluster = request->cluster;
	if (!request->slot)
		return;
	request->slot = false;
	cluster->running--;
	struct list *node = list_pop(&cluster->waiting);
	if (!node)
		return;
	struct request *next = LIST_ENTRY(node, struct request, node);
	next->slot = true;
	cluster->running++;
	send_request(next);
}

/* Nothing goes on by itself after it. */
static void halt(struct request *request)
{
	struct loop *loop = request->cluster->loop;
	list_remove(&request->node);
	list_remove(&request->credentials.node);
	loop_timer_stop(loop, &request->wait);
	loop_timer_stop(loop, &request->expiry);
	if (request->http)
		http_cancel(request->http);
	request->http = NULL;
}

/* Ends all that could call back. The memory stays until the present drain has ended, since callers may be on the stack.
 */
static void kill_request(struct request *request)
{
	struct loop *loop = request->cluster->loop;
	request->dead = true;
	list_remove(&request->leader_node);
	loop_job_cancel(&request->fenced);
	halt(request);
	loop_free_later(loop, free_request, request);
	release(request);
}

/* Connections that were made with certificates of before are left alone by what starts from now on. */
static void renew_connections(struct cluster *cluster)
{
	mux_retire(cluster->calls);
	mux_retire(cluster->watches);
}

static void refresh_credentials(struct cluster *cluster)
{
	bool changed;
	struct err err;
	if (auth_refresh(cluster->auth, &changed, &err))
		log_warn(NULL, "the credentials for %s stay as they were: %s", cluster->config->server, err.message);
	if (changed)
		renew_connections(cluster);
}

/* True when there are other credentials than those that were sent; refused: the server did not accept those. */
static bool have_better_credentials(struct request *request, bool refused)
{
	struct auth *auth = request->cluster->auth;
	if (auth_generation(auth) != request->generation)
		return true;
	return refused ? auth_reject(auth) : auth_reread(auth);
}

static double time_left(const struct request *request)
{
	double left = request->deadline - clock_now();
	return left > SHORTEST ? left : SHORTEST;
}

static void finish(struct request *request, const struct err *err, struct json_slice body)
{
	struct request_events events = request->events;
	void *data = request->data;
	log_debug(LOG_FIELDS({"error", err ? err->message : NULL}), "%s %s: %s, %.0f ms", request->method,
		  request->path, err ? "failed" : "done", (clock_now() - request->started_at) * 1000);
	if (request->counted)
		meter_done(request->cluster->meter, request->method, clock_now() - request->started_at);
	kill_request(request);
	events.on_done(data, err, body);
}

static void on_fenced(void *data)
{
	struct request *request = data;
	struct err err;
	err_set(&err, "NotLeader", "%s %s was %s: this process is not the leader", request->method, request->path,
		request->maybe_happened ? "given up" : "not sent");
	err.outcome_unknown = request->maybe_happened;
	finish(request, &err, (struct json_slice){NULL, 0});
}

/* Its slot is kept until on_fenced, since giving it on starts another request. */
static void fence(struct request *request)
{
	request->maybe_happened |= request->http && request->write;
	halt(request);
	loop_post(request->cluster->loop, &request->fenced);
}

/* The cut comes first, as the end of a transfer may write: part of an HTTP/2 request can still be in libcurl's buffer.
 */
void request_fence(struct cluster *cluster)
{
	mux_cut(cluster->calls);
	LIST_EACH (&cluster->leaders, node)
		fence(LIST_ENTRY(node, struct request, leader_node));
}

static bool may_begin(const struct request *request)
{
	const struct elector *elector = request->cluster->elector;
	return list_is_empty(&request->leader_node) || !elector || elector_is_leading(elector);
}

static const char *reach(const struct cluster *cluster)
{
	return cluster->config->proxy_url ? " through its proxy" : "";
}

/* Says where, and what to look at, around what libcurl or the server said. */
static void explain_failure(const struct request *request, const struct http_result *result, struct err *err)
{
	const struct config *config = request->cluster->config;
	const char *why = result->message ? result->message : "";
	const struct err cause = *err;
	size_t limit = request->limit ? request->limit : DEFAULT_LIMIT;
	switch (result->failure) {
	case HTTP_CONNECT:
		err_set(err, cause.reason, "cannot reach %s%s: %s", config->server, reach(request->cluster), why);
		break;
	case HTTP_UNTRUSTED:
		err_set(err, cause.reason,
			"the certificate of %s is not trusted: %s; check certificate-authority of %s", config->server,
			why, config->in_cluster ? "the service account" : config->source);
		break;
	case HTTP_TIMEOUT:
		if (result->sent)
			err_set(err, cause.reason, "%s did not answer %s %s in time", config->server, request->method,
				request->path);
		else
			err_set(err, cause.reason, "cannot reach %s%s: %s", config->server, reach(request->cluster),
				why);
		break;
	case HTTP_TOO_LARGE:
		err_set(err, cause.reason, "the answer to %s %s is larger than %zu bytes", request->method,
			request->path, limit);
		break;
	case HTTP_BROKEN:
		err_set(err, cause.reason, "the connection to %s broke during %s %s: %s", config->server,
			request->method, request->path, why);
		break;
	default: /* the URL was checked, so it is a certificate or key that OpenSSL does not take */
		err_set(err, "Connection", "the certificates or the key of %s cannot be used: %s", config->source, why);
	}
	err->retryable = cause.retryable;
	err->outcome_unknown = cause.outcome_unknown;
}

static void explain_answer(const struct request *request, const struct http_result *result, struct err *err)
{
	const struct config *config = request->cluster->config;
	bool silent = !result->body->length;
	if (!status_is(status_body(result->body)) && !(silent && err->code == 401))
		err_prefix(err, "%s %s%s", request->method, config->server, request->path);
	if (err->code != 401)
		return;
	const struct err cause = *err;
	err_set(err, cause.reason, "%s: %s does not accept the credentials of %s",
		silent ? cause.reason : cause.message, config->server, config->source);
	err->code = cause.code;
	err->retryable = cause.retryable;
	err->retry_after = cause.retry_after;
}

/* True when the server asks to come back and that is allowed: a create that failed with 5xx may have created. */
static bool may_wait(const struct request *request, const struct http_result *result)
{
	double after = result->head.retry_after;
	int code = result->head.status;
	if (result->failure || after < 0 || request->waits == MOST_WAITS)
		return false;
	if (code != 429 && (code < 500 || !strcmp(request->method, "POST")))
		return false;
	return !request->deadline || clock_now() + after < request->deadline;
}

static void wait_for_server(struct request *request, const struct err *err, double seconds)
{
	struct loop *loop = request->cluster->loop;
	meter_retry(request->cluster->meter, request->method, err->code);
	request->waits++;
	request->maybe_happened |= err->outcome_unknown;
	loop_timer_start(loop, &request->wait, seconds);
	if (request->deadline)
		loop_timer_start(loop, &request->expiry, time_left(request));
	release(request);
	if (request->events.on_wait)
		request->events.on_wait(request->data, err, seconds);
}

static void fail(struct request *request, const struct http_result *result)
{
	struct err err;
	status_of_result(result, request->write, &err);
	if (result->failure)
		explain_failure(request, result, &err);
	else
		explain_answer(request, result, &err);
	if (may_wait(request, result)) {
		wait_for_server(request, &err, result->head.retry_after);
		return;
	}
	err.outcome_unknown |= request->maybe_happened;
	if (!result->failure && request->events.on_head)
		request->events.on_head(request->data, &result->head);
	if (!request->dead)
		finish(request, &err, status_body(result->body));
}

/* The answer is handed on as JSON when that was asked for, so it must be: a web page of some proxy is none. */
static void succeed(struct request *request, const struct http_result *result)
{
	const struct buf *body = result->body;
	bool empty = request->stream || !body || !body->length;
	struct json_slice json = empty ? (struct json_slice){NULL, 0} : status_body(body);
	if (!request->stream && request->events.on_head)
		request->events.on_head(request->data, &result->head);
	if (request->dead)
		return;
	if (empty || json.data) {
		finish(request, NULL, json);
		return;
	}
	if (request->accept) {
		finish(request, NULL, (struct json_slice){body->data, body->length});
		return;
	}
	struct err why, err;
	json_validate(body->data, body->length, &why);
	err_set(&err, "Connection", "the answer to %s %s%s is no JSON but %s (%s); is this an API server?",
		request->method, request->cluster->config->server, request->path,
		*result->head.content_type ? result->head.content_type : "bytes", why.message);
	err.outcome_unknown = request->write;
	finish(request, &err, json);
}

static bool is_success(const struct http_head *head)
{
	return head->status >= 200 && head->status < 300;
}

/* Files may have been replaced since they were read, or in the middle of that; a plugin may have better ones. */
static bool may_be_healed(struct request *request, const struct http_result *result)
{
	bool refused = result->failure == HTTP_REFUSED || (!result->failure && result->head.status == 401);
	bool credentials = refused || result->failure == HTTP_UNTRUSTED;
	return credentials && !request->repeated && have_better_credentials(request, refused);
}

/* libcurl 7.88.1 loses an answer's body, though not its status, when the server's GOAWAY arrives together with it. API
 * servers send one with every 401, and now and then to spread their load. The status of a refusal counts all the same.
 */
static bool is_cut_refusal(const struct http_result *result)
{
	return result->failure == HTTP_BROKEN && result->head.status >= 400;
}

/* An answer that broke off is asked for again where nothing was done by it: a read, and what was refused with 4xx (408
 * is none: a proxy's, that gave up waiting). */
static bool may_resend(const struct request *request, const struct http_result *result)
{
	int status = result->head.status;
	if (result->failure != HTTP_BROKEN || request->resent == MOST_RESENT)
		return false;
	if (status >= 400 && status < 500)
		return status != 401 && status != 408 && status != 429;
	return is_success(&result->head) && !request->write && !request->stream;
}

/* Once for each try, when its head has come or can come no more. */
static void note_answer(struct request *request, int status)
{
	if (!request->answered)
		meter_answer(request->cluster->meter, request->method, status);
	request->answered = true;
}

static void send_again(struct request *request, const struct http_result *result)
{
	meter_retry(request->cluster->meter, request->method, result->head.status);
	send_request(request);
}

static void on_done(void *data, const struct http_result *result)
{
	struct request *request = data;
	struct http_result answer = *result;
	note_answer(request, result->head.status);
	if (is_cut_refusal(result))
		answer.failure = HTTP_NONE;
	request->http = NULL;
	if (!answer.failure && is_success(&answer.head)) {
		succeed(request, &answer);
	} else if (may_be_healed(request, &answer)) {
		request->repeated = true;
		send_again(request, result);
	} else if (may_resend(request, result)) {
		request->resent++;
		send_again(request, result);
	} else {
		fail(request, &answer);
	}
}

/* Of a buffered answer the head is told once it has come whole, as it may be asked for again. */
static void on_head(void *data, const struct http_head *head)
{
	struct request *request = data;
	note_answer(request, head->status);
	if (request->stream && is_success(head) && request->events.on_head)
		request->events.on_head(request->data, head);
}

static void on_chunk(void *data, const char *bytes, size_t length)
{
	struct request *request = data;
	request->events.on_chunk(request->data, bytes, length);
}

static void on_warning(void *data, const char *text)
{
	struct request *request = data;
	warning_log(&request->cluster->warnings, text, request->script);
}

static void on_credentials(void *data, const struct err *err)
{
	struct request *request = data;
	if (!err) {
		send_request(request);
		return;
	}
	struct err cause = *err;
	cause.outcome_unknown = request->maybe_happened;
	finish(request, &cause, (struct json_slice){NULL, 0});
}

/* False: on_credentials is called later. */
static bool has_credentials(struct request *request)
{
	struct cluster *cluster = request->cluster;
	refresh_credentials(cluster);
	request->generation = auth_generation(cluster->auth);
	if (auth_ready(cluster->auth, &request->credentials))
		return true;
	if (request->deadline)
		loop_timer_start(cluster->loop, &request->expiry, time_left(request));
	return false;
}

/* The array is the caller's, the lines are borrowed. */
static const char **list_headers(const struct request *request, const char *accept, const char *content_type)
{
	const char *const *credentials = auth_headers(request->cluster->auth);
	size_t count = 0;
	while (credentials[count])
		count++;
	const char **headers = alloc_zero((count + 4) * sizeof(*headers)), **next = headers;
	*next++ = USER_AGENT;
	*next++ = accept;
	if (request->body)
		*next++ = content_type;
	memcpy(next, credentials, count * sizeof(*credentials));
	return headers;
}

static void send_request(struct request *request)
{
	static const struct http_events events = {on_head, on_chunk, on_warning, on_done};
	struct cluster *cluster = request->cluster;
	if (!may_begin(request)) {
		fence(request);
		return;
	}
	if (!has_credentials(request))
		return;
	request->answered = false;
	loop_timer_stop(cluster->loop, &request->expiry);
	char accept[300], content_type[300];
	const char *type = request->content_type ? request->content_type : "application/json";
	snprintf(accept, sizeof(accept), "Accept: %s", request->accept ? request->accept : "application/json");
	snprintf(content_type, sizeof(content_type), "Content-Type: %s", type);
	const char **headers = list_headers(request, accept, content_type);
	request->http = http_start(request->counted ? cluster->calls : cluster->watches,
				   &(struct http_request){
				       .method = request->method,
				       .url = request->url,
				       .headers = headers,
				       .body = request->body,
				       .body_length = request->body_length,
				       .tls = auth_tls(cluster->auth),
				       .proxy = cluster->config->proxy_url,
				       .timeout = request->deadline ? time_left(request) : 0,
				       .limit = request->limit,
				       .stream = request->stream,
				   },
				   &events, request);
	alloc_free(headers);
}

/* Takes a slot, or waits for one. */
static void enter(struct request *request)
{
	struct cluster *cluster = request->cluster;
	if (request->counted && !request->urgent && cluster->running >= CLUSTER_CALLS) {
		list_add_tail(&cluster->waiting, &request->node);
		if (request->deadline)
			loop_timer_start(cluster->loop, &request->expiry, time_left(request));
		return;
	}
	request->slot = request->counted && !request->urgent;
	cluster->running += request->slot;
	send_request(request);
}

static void on_wait_over(void *data)
{
	enter(data);
}

static void on_expiry(void *data)
{
	struct request *request = data;
	struct err err;
	const char *why = request->waits ? "the server asks to wait" : "too many requests are under way";
	if (!list_is_empty(&request->credentials.node))
		why = "the exec plugin, which has the credentials, still runs";
	err_set(&err, "Timeout", "%s %s was not sent within %g s: %s", request->method, request->path, request->timeout,
		why);
	err.retryable = true;
	err.outcome_unknown = request->maybe_happened;
	finish(request, &err, (struct json_slice){NULL, 0});
}

struct request *request_start(struct cluster *cluster, const struct request_options *options,
			      const struct request_events *events, void *data)
{
	struct request *request = alloc_object(&request_type, sizeof(*request));
	request->cluster = cluster;
	request->events = *events;
	request->data = data;
	request->method = alloc_string(options->method);
	request->path = alloc_string(options->path);
	request->url = make_url(cluster, options);
	request->accept = alloc_string(options->accept);
	request->content_type = alloc_string(options->content_type);
	request->script = alloc_string(options->script);
	take_body(request, options);
	request->limit = options->limit;
	request->stream = options->stream;
	request->counted = options->list || !options->stream;
	request->urgent = options->urgent;
	request->write = is_write(options->method);
	request->timeout = options->timeout;
	request->started_at = clock_now();
	request->deadline = options->timeout > 0 ? clock_now() + options->timeout : 0;
	list_init(&request->leader_node);
	if (options->leader)
		list_add_tail(&cluster->leaders, &request->leader_node);
	list_init(&request->node);
	list_init(&request->credentials.node);
	request->credentials.on_ready = on_credentials;
	request->credentials.data = request;
	loop_job_init(&request->fenced, on_fenced, request);
	loop_timer_init(&request->wait, on_wait_over, request);
	loop_timer_init(&request->expiry, on_expiry, request);
	enter(request);
	return request;
}

double request_silence(const struct request *request)
{
	return request->http ? http_silence(request->http) : 0;
}

void request_suspect(struct request *request)
{
	if (request->http)
		http_suspect(request->http);
}

void request_cancel(struct request *request)
{
	if (request && !request->dead)
		kill_request(request);
}
