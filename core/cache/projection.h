/* projection: which part of an object the cache keeps. Bytes in; bytes with apiVersion and kind and without the dropped
 * paths out, or the object that has them. */
#ifndef PERILUNE_CACHE_PROJECTION_H
#define PERILUNE_CACHE_PROJECTION_H

#include "cache/object.h"
#include "cache/transform.h"
#include "kube/resource.h"
#include "json/outline.h"

struct projection {
	struct json_path **drop; /* metadata.managedFields unless told otherwise */
	size_t drop_count;
	struct json_path **keep; /* NULL: all but drop */
	size_t keep_count;
	struct json_path *metadata; /* what metadata_only leaves of a server that sends whole objects all the same */
	bool metadata_only;         /* asks the server for PartialObjectMetadata */
	bool leaves_meta;           /* what an object's record takes of metadata is the item's, but for transform */
	struct transform
	    *transform; /* of what is left after all that; counted, NULL for none. Set after projection_init */
};

/* drop and keep: arrays of path texts, or NULL. Not both. 0, or -1 with err naming the path that is malformed, or that
 * would drop what says which object this is: metadata, or its name, namespace, uid or resourceVersion. */
int projection_init(struct projection *projection, const char *const *drop, size_t drop_count, const char *const *keep,
		    size_t keep_count, bool metadata_only, struct err *err);
void projection_fini(struct projection *projection);

/* Replaces out's content. Items of a LIST carry no apiVersion and kind, and metadata-only answers say
 * PartialObjectMetadata: both are set from the arguments, first. 0, or -1 with err. */
int projection_apply(const struct projection *projection, const char *api_version, const char *kind,
		     const struct outline *item, struct buf *out, struct err *err);
/* The same to an object, of that resource's apiVersion and kind; the caller's. meta: the item's metadata. scratch: its
 * content goes. NULL with err where it is too large, or as object_new_of. */
struct object *projection_object(const struct projection *projection, const struct resource *resource,
				 const struct outline *item, const struct json_meta *meta, struct buf *scratch,
				 struct err *err);

#endif
