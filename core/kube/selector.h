/* selector: label selectors in kubectl's syntax, matched on this side. Text in; a matcher for an object's labels out.
 *
 * "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", joined by commas; all must hold. != and notin also
 * hold when the label is absent, as at the server. */
#ifndef PERILUNE_KUBE_SELECTOR_H
#define PERILUNE_KUBE_SELECTOR_H

#include "json/scan.h"

struct selector;
/* NULL with err naming the place; "" selects everything. */
struct selector *selector_new(const char *text, struct err *err);
void selector_free(struct selector *selector);
/* labels: metadata.labels; .data NULL when absent. */
bool selector_matches(const struct selector *selector, struct json_slice labels);

#endif
