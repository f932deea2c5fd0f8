/* http_private: one request as the http*.c files share it.
 *
 * http.c owns its life and calls the events; http_easy.c fills the easy handle; http_head.c reads the answer's head;
 * http_backlog.c holds what of a stream was not told yet; http_attempt.c knows what became of each attempt to send it;
 * http_silence.c judges connections on which nothing comes; http_tls.c holds the certificates. libcurl's callbacks live
 * in http_easy.c, http_head.c and http_attempt.c, and only record. */
#ifndef PERILUNE_NET_HTTP_PRIVATE_H
#define PERILUNE_NET_HTTP_PRIVATE_H

#include <curl/curl.h>

#include "net/http.h"
#include "net/mux_transfer.h"

#define HTTP_ATTEMPTS 6 /* the first and five more */

/* One sending of the request. A second one begins only where the server surely did not process the first, or where it
 * does not matter (GET, HEAD). */
struct http_attempt {
	bool connected;
	char local_ip[64]; /* with local_port: the connection, as sibling requests see it; set when connected */
	int local_port;    /* 0: not known */
	size_t received;   /* of the answer's body */
	long stream;       /* the HTTP/2 stream, 0 for none */
	bool sent;         /* some of it may have reached the server */
	bool refused;      /* and the server said that it did not process it */
};

/* Bytes of a streamed answer that are told at a time, at most: a fraction of a millisecond for whoever reads them.
 * libcurl brings megabytes at once where the server is fast: others get their turn between slices, and nothing more is
 * read until all of them are told. */
#define HTTP_SLICE ((size_t)120 << 10)

/* What is told at a time: HTTP_SLICE, or a small one that an idle stream keeps. */
struct http_block {
	struct list node;
	size_t length, room;
	char bytes[];
};

struct http {
	struct mux_transfer transfer;
	struct mux *mux;
	struct http_events events;
	void *data;
	struct loop_job job;
	struct loop_timer deadline, connect_deadline;
	double timeout, connect_timeout;

	struct http_tls *tls; /* the easy handle points into it */
	struct curl_slist *headers, *connect_to;
	bool streamed, repeatable; /* repeatable: GET or HEAD */
	size_t limit;

	struct http_head head;
	bool head_begun, head_complete, head_told;
	struct buf body;          /* of an answer that is not streamed */
	struct list backlog;      /* of one that is: struct http_block */
	unsigned blocks;          /* in it */
	struct http_block *spare; /* owned; NULL where none is kept */
	struct buf warnings;      /* each ended by a NUL */
	struct buf fields;        /* as in the result */
	unsigned field_count;
	bool keeps_fields;
	double last_byte_at;

	struct http_attempt attempt;
	int attempts;
	bool starved;     /* no descriptor was left for its socket */
	bool sent_before; /* an attempt before the present one may have reached the server */

	enum http_failure failure; /* known before libcurl said its own */
	bool ended;                /* libcurl has said code */
	CURLcode code;
	bool over; /* on_done was called, or http_cancel: no event may follow */
	char message[512];
	char curl_message[CURL_ERROR_SIZE];
};

/* -1 with message when the request is malformed. */
int http_prepare(struct http *http, const struct http_request *request);

/* For http_prepare. */
void http_tls_apply(const struct http_tls *tls, CURL *easy);
const char *http_tls_server_name(const struct http_tls *tls); /* NULL for the URL's host */
size_t http_on_header(char *bytes, size_t size, size_t count, void *http);
int http_on_debug(CURL *easy, curl_infotype type, char *bytes, size_t size, void *http);
int http_on_connected(void *http, char *peer_ip, char *local_ip, int peer_port, int local_port);

bool http_same_connection(const struct http_attempt *a, const struct http_attempt *b);
/* A deadline passed with nothing from the server: what starts from now on makes a connection of its own if nothing else
 * came on this one either. */
void http_avoid_silent(struct http *http);
bool http_may_repeat(const struct http *http); /* after the end: it should be sent again, unseen by the caller */
bool http_was_sent(const struct http *http);
enum http_failure http_explain(struct http *http); /* fills message when it is not HTTP_NONE */

bool http_is_streaming(const struct http *http); /* the body goes to on_chunk */

void http_backlog_add(struct http *http, const char *bytes, size_t length); /* copied */
/* Two blocks and more than they hold: one is told, one is being filled. */
bool http_backlog_is_long(const struct http *http);
struct http_block *http_backlog_take(struct http *http); /* the first of one or more; the caller's until it is given */
void http_backlog_give(struct http *http, struct http_block *block); /* taken */
void http_backlog_free(struct http *http);                           /* the spare, too */

#endif
