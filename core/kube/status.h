/* status: what a failed answer means. HTTP result and Status body in; a struct err out. */
#ifndef PERILUNE_KUBE_STATUS_H
#define PERILUNE_KUBE_STATUS_H

#include "net/http.h"
#include "json/scan.h"

/* Fills err from a result that is no success: the Status body's reason and message where there is one, else the HTTP
 * status' usual reason, else Connection, Timeout or TooLarge. `write` says whether the request could have changed
 * something (for outcome_unknown). */
void status_of_result(const struct http_result *result, bool write, struct err *err);

/* The same for a Status object by itself (an ERROR event of a watch). */
void status_of_object(struct json_slice status, struct err *err);

/* A buffered answer as one JSON value, the space around it left out; .data NULL when it is none. */
struct json_slice status_body(const struct buf *body);
bool status_is(struct json_slice value); /* an object of kind Status */

/* details.causes of a Status: an array slice, .data NULL when there is none. */
struct json_slice status_causes(struct json_slice status);

/* A too large resourceVersion: 504 or 410 whose details carry the cause ResourceVersionTooLarge, or whose message says
 * it (older servers). */
bool status_is_too_large_version(struct json_slice status);

#endif
