/* request: one call of the Kubernetes API, buffered or streamed.
 *
 * Adds credentials, Accept, Content-Type and User-Agent (perilune/VERSION (os/arch)). Repeats once after 401, or a
 * certificate that is not accepted, when the files of the credentials hold others by now or an exec plugin gives
 * others. Obeys Retry-After up to 10 times (429 for any verb; 5xx never for create). At most CLUSTER_CALLS at once a
 * cluster, the rest wait in order. The deadline covers all of that. Streamed requests use the watches' connections and
 * are not counted. */
#ifndef PERILUNE_KUBE_REQUEST_H
#define PERILUNE_KUBE_REQUEST_H

#include "kube/cluster.h"
#include "json/scan.h"

/* All of it is borrowed for the call of request_start only. */
struct request_options {
	const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
	const char *path;         /* from resource_path, or any other, as "/version" */
	const char *query;        /* "limit=500&watch=true", already encoded (request_query_add); NULL for none */
	const char *accept;       /* NULL: application/json */
	const char *content_type; /* NULL: application/json when there is a body */
	const char *body;
	size_t body_length;
	double timeout;     /* seconds for all of it, 0 none; the caller's default is 60 for calls */
	size_t limit;       /* most bytes of the answer when buffered; 0 is 64 MiB */
	bool stream;        /* on_chunk gets the body of a 2xx answer */
	const char *script; /* whose call it is, for the log; NULL: the program's own */
	bool leader; /* begins only while cluster->elector, where there is one, is leading; else it fails with reason
			NotLeader */
	bool urgent; /* waits for no other call: does not count against the cap */
	bool list;   /* streamed, but a call by its kind: uses the calls' connections and counts against the cap */
};

struct request_events {
	void (*on_head)(void *data, const struct http_head *head); /* of the answer that counts; may be NULL */
	void (*on_chunk)(void *data, const char *bytes, size_t length);
	void (*on_wait)(void *data, const struct err *err,
			double seconds); /* a Retry-After is being obeyed; may be NULL */
	/* err NULL on 2xx; body: the buffered answer, or the Status of a failed one (.data NULL when it was no JSON).
	 * Borrowed. The request is dead after it. Without `accept` a 2xx answer that is no JSON is an error; with it,
	 * what is no JSON is given as it came. */
	void (*on_done)(void *data, const struct err *err, struct json_slice body);
};

struct request;
struct request *request_start(struct cluster *cluster, const struct request_options *options,
			      const struct request_events *events, void *data);
void request_cancel(struct request *request); /* no event after it */
/* The lease is lost: nothing more is written for requests with `leader`, which fail later, from the loop. Connections
 * are cut for that, so other calls under way break off. For the wake of the loop too. */
void request_fence(struct cluster *cluster);
/* Seconds since something came of the answer, or since it was sent; 0 while it is not under way. */
double request_silence(const struct request *request);
void request_suspect(struct request *request); /* http_suspect, where it is under way */

/* Appends "&name=value" percent-encoded ("name=value" when query is empty). */
void request_query_add(struct buf *query, const char *name, const char *value);

#endif
