#include "cache/selection.h"

#include "base/alloc.h"
#include "cache/labels.h"
#include "kube/selector.h"

ALLOC_TYPE(selection_type, "selection");

enum verdict { NOT_JUDGED, SELECTED, LEFT_OUT };

struct selection {
	struct selector *selector;
	uint8_t *verdicts; /* by the number of the set */
	uint32_t count;
	struct buf opened; /* of the object that is looked at */
};

struct selection *selection_new(const char *text, struct err *err)
{
	struct selector *selector = selector_new(text, err);
	if (!selector)
		return NULL;
	struct selection *selection = alloc_object(&selection_type, sizeof(*selection));
	selection->selector = selector;
	buf_init(&selection->opened, 0);
	return selection;
}

void selection_free(struct selection *selection)
{
	if (!selection)
		return;
	selector_free(selection->selector);
	alloc_free(selection->verdicts);
	buf_fini(&selection->opened);
	alloc_object_free(&selection_type, selection);
}

static bool matches_opened(struct selection *selection, const struct object *object)
{
	struct json_meta meta;
	return json_meta(object_open(object, &selection->opened), &meta) == 0 &&
	       selector_matches(selection->selector, meta.labels);
}

static void begin(struct selection *selection)
{
	if (selection->count)
		return;
	selection->count = labels_end();
	selection->verdicts = alloc_zero(selection->count * sizeof(*selection->verdicts));
}

bool selection_has(struct selection *selection, const struct object *object)
{
	uint32_t set = object_labels(object);
	begin(selection);
	if (set == LABELS_UNKNOWN || set >= selection->count)
		return matches_opened(selection, object);
	uint8_t *verdict = &selection->verdicts[set];
	if (*verdict == NOT_JUDGED)
		*verdict = selector_matches(selection->selector, labels_bytes(set)) ? SELECTED : LEFT_OUT;
	return *verdict == SELECTED;
}
