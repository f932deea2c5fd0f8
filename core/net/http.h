/* http: one HTTP request, buffered or streamed, with deadline and cancel.
 *
 * libcurl's callbacks only append to this request's buffer or backlog and post its job; the events below are called
 * from the loop's drain, so they may do anything, http_cancel included. Order: on_head once, on_warning for each
 * warning, then on_chunk any number of times (streamed only), then on_done once. A request that is refused by the
 * server before processing (REFUSED_STREAM, GOAWAY beyond it, a reused connection that was found dead before anything
 * was sent) is sent again by itself, 5 times at most; so is a GET or HEAD whose reused connection died before an
 * answer. TLS is verified; redirects are not followed; the receiving of a transfer is never paused. */
#ifndef PERILUNE_NET_HTTP_H
#define PERILUNE_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/mux.h"

/* How to reach one server. PEM texts; NULL where not used. Shared: counted, immutable. A changed certificate is a new
 * one. */
struct http_tls;
struct http_tls_options {
	const char *ca;          /* the only authorities trusted; NULL is the system's */
	const char *cert, *key;  /* client certificate */
	const char *server_name; /* verified instead of the URL's host (and sent as SNI) */
	bool insecure;           /* no verification; only where the kubeconfig says so */
};
struct http_tls *http_tls_new(const struct http_tls_options *options); /* copies; the count is 1 */
struct http_tls *http_tls_ref(struct http_tls *tls);
void http_tls_unref(struct http_tls *tls); /* NULL is harmless */

/* All of it is borrowed for the call of http_start only. */
struct http_request {
	const char *method;         /* "GET" … */
	const char *url;            /* http or https */
	const char *const *headers; /* "Name: value", ended by NULL; may be NULL */
	const char *body;           /* NULL for none */
	size_t body_length;
	struct http_tls *tls;    /* NULL: system authorities */
	const char *proxy;       /* NULL: none (the environment is not read) */
	const char *unix_socket; /* NULL, or the path of a socket that is connected to instead of the URL's host */
	double connect_timeout;  /* seconds; 0 is 30 */
	double timeout;          /* seconds for the whole of it; 0 is none */
	size_t limit; /* most bytes of a buffered answer, and of an error's body when streamed; 0 is 64 MiB */
	bool fields;  /* the head's fields are wanted, 1000 and 64 KiB at most; what has more ends as HTTP_TOO_LARGE */
	bool stream;  /* on_chunk gets the body of a 2xx answer; other answers are buffered all the same */
};

struct http_head {
	int status;
	double retry_after; /* seconds, negative when absent; dates are understood too; capped at an hour */
	char content_type[80];
};

enum http_failure {
	HTTP_NONE,      /* an answer came, whatever its status */
	HTTP_CONNECT,   /* no connection: refused, unreachable, name not found */
	HTTP_UNTRUSTED, /* the server's certificate was not accepted */
	HTTP_TIMEOUT,   /* the deadline, or connect_timeout, passed */
	HTTP_BROKEN,    /* the connection or the answer broke off, or was not HTTP */
	HTTP_TOO_LARGE, /* the answer passed the limit */
	HTTP_REFUSED    /* the request itself is malformed; nothing was sent */
};

struct http_result {
	enum http_failure failure;
	struct http_head head; /* status 0 when no answer came */
	const char *message;   /* one line when failure is set; borrowed for the call */
	bool sent;             /* some of the request may have reached the server */
	struct buf *body;      /* the buffered answer; borrowed, buf_take and the like are allowed */
	/* Where they were wanted: name, NUL, value, NUL for each in order, names in lower case; borrowed. */
	const struct buf *fields;
};

struct http_events {
	void (*on_head)(void *data, const struct http_head *head);      /* may be NULL */
	void (*on_chunk)(void *data, const char *bytes, size_t length); /* may be NULL when not streamed */
	void (*on_warning)(void *data, const char *text);               /* each Warning header; may be NULL */
	void (*on_done)(void *data, const struct http_result *result);  /* the handle is dead after it */
};

struct http;

/* Never NULL, and no event is called before it returns. */
struct http *http_start(struct mux *mux, const struct http_request *request, const struct http_events *events,
			void *data);
void http_cancel(struct http *http); /* no event is called after it; returns at once, also during a name look-up */
double http_silence(const struct http *http); /* seconds since the last byte of the answer came (or since the start) */
/* The caller has waited too long for this one. When nothing has come on its whole connection for 30 s either, that is
 * taken for dead: the other requests on it end as HTTP_BROKEN, and what starts from now on makes a new one. This one is
 * left to the caller. */
void http_suspect(struct http *http);

/* How far a request has come. */
struct http_progress {
	const char *url; /* borrowed for the call */
	int local_port;  /* of its connection, or of the last one that its attempt had; 0 before */
	bool headed;     /* the answer's head has come, on this attempt */
	size_t received; /* bytes of the answer's body, on this attempt */
};
/* Of each request under way in mux. fn starts and cancels none. */
void http_each(const struct mux *mux, void (*fn)(void *data, const struct http_progress *progress), void *data);

#endif
