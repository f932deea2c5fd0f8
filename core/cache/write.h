/* write: what the API's answer to a write says of one object. An answer's JSON in; put, gone or nothing out.
 *
 * The answer to a delete is the object as it was last, a Status that names its uid, or, where finalizers or a grace
 * period keep it, the object with a deletionTimestamp. An update that takes the last finalizer of such an object away
 * ends it, and is answered with the object. */
#ifndef PERILUNE_CACHE_WRITE_H
#define PERILUNE_CACHE_WRITE_H

#include "cache/object.h"
#include "kube/resource.h"

/* One write that the server has answered with success, and that was no dry run. All borrowed. */
struct write {
	const struct resource *resource;
	const char *method;
	const char *namespace, *name; /* as in the path; NULL where it named none */
	struct json_slice answer;     /* validated */
};

enum write_outcome {
	WRITE_NOTHING, /* it is no write, or the answer is of another kind, as a Scale is, or of no object */
	WRITE_PUT,     /* the answer is the object */
	WRITE_GONE     /* the object is no more */
};

struct write_result {
	enum write_outcome outcome;
	bool whole;            /* the answer is the object, perhaps as it was before it went */
	struct json_meta meta; /* of the answer, where it is whole */
	struct buf key, uid;   /* GONE: as the cache has them */
};

void write_read(const struct write *write, struct write_result *out);
void write_result_fini(struct write_result *result);

#endif
