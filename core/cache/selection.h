/* selection: which objects a label selector selects. Its text and objects in; verdicts out.
 *
 * A set of labels that several objects share is judged once. Only an object whose set is not known is opened. It costs
 * a byte for each set of labels that there is. */
#ifndef PERILUNE_CACHE_SELECTION_H
#define PERILUNE_CACHE_SELECTION_H

#include "cache/object.h"

/* For one look through a cache: a set that is new since the first selection_has counts as not known. */
struct selection;
struct selection *selection_new(const char *selector, struct err *err); /* NULL with err, as selector_new */
void selection_free(struct selection *selection);                       /* NULL is harmless */
bool selection_has(struct selection *selection, const struct object *object);

#endif
