#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/http_private.h"

/* A dead peer is noticed within about a minute: by keepalive when nothing is under way, by TCP_USER_TIMEOUT when
 * something is. */
#define KEEPALIVE_IDLE 30L
#define KEEPALIVE_INTERVAL 10L
#define USER_TIMEOUT_MS 30000

static int refuse(struct http *http, const char *why)
{
	snprintf(http->message, sizeof(http->message), "malformed request: %s", why);
	return -1;
}

bool http_is_streaming(const struct http *http)
{
	return http->streamed && http->head.status >= 200 && http->head.status < 300;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *data)
{
	struct http *http = data;
	size_t length = size * count;
	http->last_byte_at = clock_now();
	http->attempt.received += length;
	if (http_is_streaming(http)) {
		http_backlog_add(http, bytes, length);
		if (http_backlog_is_long(http))
			mux_hold(&http->transfer);
	} else if (buf_append(&http->body, bytes, length)) {
		http->failure = HTTP_TOO_LARGE;
		snprintf(http->message, sizeof(http->message), "the answer is larger than %zu bytes", http->limit);
		return 0;
	}
	loop_post(mux_loop(http->mux), &http->job);
	return length;
}

/* libcurl opens its sockets without close-on-exec; programs that are started must not hold connections. An attempt that
 * libcurl begins by itself gets no new connection here: it would pass by the mux's gate, and each of the streams that a
 * GOAWAY gives up would make its own. It ends, and begins again. */
static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)purpose;
	struct http *http = data;
	if (http->attempt.connected)
		return CURL_SOCKET_BAD;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	http->starved = fd < 0 && (errno == EMFILE || errno == ENFILE);
	return fd;
}

static int tune_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
	(void)data, (void)purpose;
	unsigned milliseconds = USER_TIMEOUT_MS;
	/* Not every kind of socket has it. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
	return CURL_SOCKOPT_OK;
}

static void set_callbacks(struct http *http)
{
	CURL *easy = http->transfer.easy;
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http->curl_message);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, http);
	/* VERBOSE feeds the debug function alone: nothing is printed or kept. */
	curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, http_on_debug);
	curl_easy_setopt(easy, CURLOPT_DEBUGDATA, http);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, http_on_connected);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, http);
}

static void set_transport(struct http *http)
{
	CURL *easy = http->transfer.easy;
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* No session is resumed, so that each connection shows the certificate of now. */
	curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, http);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, tune_socket);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(http->connect_timeout * 1000));
	/* For an HTTP transfer this option has one effect: libcurl no longer repeats by itself whatever ran on a reused
	 * connection that died. What the server refused it still repeats, and says so; http_attempt.c decides about the
	 * rest. */
	curl_easy_setopt(easy, CURLOPT_RTSP_REQUEST, (long)CURL_RTSPREQ_RECEIVE);
}

/* An empty proxy, and an empty list of exceptions, keep the environment's out. */
static void set_route(struct http *http, const struct http_request *request)
{
	CURL *easy = http->transfer.easy;
	curl_easy_setopt(easy, CURLOPT_PROXY, request->proxy ? request->proxy : "");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (request->unix_socket)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
}

static bool is_token(const char *text)
{
	return *text &&
	       !text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~")];
}

static int set_method(struct http *http, const struct http_request *request)
{
	CURL *easy = http->transfer.easy;
	const char *method = request->method;
	if (!method || !is_token(method))
		return refuse(http, "the method is no token");
	http->repeatable = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	if (strcmp(method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
		return 0;
	}
	bool bodied = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
	if (request->body || bodied) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)(request->body ? request->body_length : 0));
		curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body ? request->body : "");
	}
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
	return 0;
}

static void add_header(struct http *http, const char *line)
{
	http->headers = curl_slist_append(http->headers, line);
}

static bool has_header(const struct http_request *request, const char *name)
{
	size_t length = strlen(name);
	for (const char *const *line = request->headers; line && *line; line++)
		if (strncasecmp(*line, name, length) == 0 && (*line)[length] == ':')
			return true;
	return false;
}

/* libcurl takes "Name:" as "leave this header out"; its way to send an empty one is "Name;". */
static int add_callers_header(struct http *http, const char *line)
{
	const char *colon = strchr(line, ':');
	if (!colon || colon == line || strpbrk(line, "\r\n") || strcspn(line, " \t") < (size_t)(colon - line))
		return refuse(http, "a header that is not \"Name: value\"");
	if (colon[1 + strspn(colon + 1, " \t")]) {
		add_header(http, line);
		return 0;
	}
	char *empty = alloc_format("%.*s;", (int)(colon - line), line);
	add_header(http, empty);
	alloc_free(empty);
	return 0;
}

static int set_headers(struct http *http, const struct http_request *request)
{
	/* What libcurl would send by itself; with nothing behind the colon it does not. */
	static const char *const own[] = {"User-Agent", "Content-Type", "Expect"};
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		char line[32];
		snprintf(line, sizeof(line), "%s:", own[i]);
		if (!has_header(request, own[i]))
			add_header(http, line);
	}
	for (const char *const *line = request->headers; line && *line; line++)
		if (add_callers_header(http, *line))
			return -1;
	curl_easy_setopt(http->transfer.easy, CURLOPT_HTTPHEADER, http->headers);
	return 0;
}

struct address {
	char *host, *port, *authority; /* authority: host, and the port where the URL names one */
};

static void address_fini(struct address *address)
{
	curl_free(address->host);
	curl_free(address->port);
	alloc_free(address->authority);
}

static int address_read(struct address *address, CURLU *url)
{
	char *port = NULL;
	if (curl_url_get(url, CURLUPART_HOST, &address->host, 0) ||
	    curl_url_get(url, CURLUPART_PORT, &address->port, CURLU_DEFAULT_PORT))
		return -1;
	curl_url_get(url, CURLUPART_PORT, &port, 0);
	address->authority = alloc_format("%s%s%s", address->host, port ? ":" : "", port ? port : "");
	curl_free(port);
	return 0;
}

/* The name that is verified, and sent as SNI, is the URL's host: so that name becomes the host, the connection still
 * goes to the real one, and the Host header says what it would have said. */
static int rename_server(struct http *http, CURLU *url, const char *server_name, bool callers_host)
{
	struct address address = {0};
	int result = -1;
	if (address_read(&address, url) == 0 && curl_url_set(url, CURLUPART_HOST, server_name, 0) == CURLUE_OK) {
		char *line = alloc_format("::%s:%s", address.host, address.port);
		http->connect_to = curl_slist_append(NULL, line);
		alloc_free(line);
		curl_easy_setopt(http->transfer.easy, CURLOPT_CONNECT_TO, http->connect_to);
		line = alloc_format("Host: %s", address.authority);
		if (!callers_host)
			add_header(http, line);
		alloc_free(line);
		result = 0;
	}
	address_fini(&address);
	return result;
}

/* HTTP/2 is for TLS. In clear text nothing is known of the server before its first answer, and others would wait for
 * that. */
static void set_version(struct http *http, bool over_tls)
{
	CURL *easy = http->transfer.easy;
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(over_tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, over_tls ? 1L : 0L);
}

/* The origin's name is what decides whether two requests could share a connection; none for those that never could. */
static int name_origin(struct http *http, CURLU *url, const struct http_request *request)
{
	struct address address = {0};
	char *scheme = NULL;
	int result = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) ? -1 : address_read(&address, url);
	bool over_tls = scheme && strcasecmp(scheme, "https") == 0;
	set_version(http, over_tls);
	if (result == 0 && over_tls)
		http->transfer.origin_name = alloc_format("%s:%s %p %s %s", address.host, address.port,
							  (void *)http->tls, request->proxy ? request->proxy : "",
							  request->unix_socket ? request->unix_socket : "");
	curl_free(scheme);
	address_fini(&address);
	return result;
}

static int set_url(struct http *http, const struct http_request *request)
{
	const char *server_name = http->tls ? http_tls_server_name(http->tls) : NULL;
	CURLU *url = curl_url();
	char *text = NULL;
	int result = 0;
	if (!request->url || curl_url_set(url, CURLUPART_URL, request->url, CURLU_PATH_AS_IS) ||
	    name_origin(http, url, request))
		result = refuse(http, "the URL can't be read");
	else if (server_name && rename_server(http, url, server_name, has_header(request, "Host")))
		result = refuse(http, "the TLS server name can't be the host of a URL");
	else if (curl_url_get(url, CURLUPART_URL, &text, 0))
		result = refuse(http, "the URL can't be read");
	else
		curl_easy_setopt(http->transfer.easy, CURLOPT_URL, text);
	curl_easy_setopt(http->transfer.easy, CURLOPT_PATH_AS_IS, 1L);
	curl_free(text);
	curl_url_cleanup(url);
	return result;
}

int http_prepare(struct http *http, const struct http_request *request)
{
	set_callbacks(http);
	set_transport(http);
	set_route(http, request);
	if (http->tls)
		http_tls_apply(http->tls, http->transfer.easy);
	if (set_method(http, request) || set_url(http, request))
		return -1;
	return set_headers(http, request);
}
