/* source: an informer whose events bring keys to a controller: those of its objects, of their owners, or of whatever a
 * function makes of them.
 *
 * Nothing is decoded for a key; only the owner's functions may want to see the object. Each event counts for itself,
 * also an add whose delete came along with it. Keys of the initial state and of a resync come with low priority. */
#ifndef PERILUNE_WORK_SOURCE_H
#define PERILUNE_WORK_SOURCE_H

#include "cache/informer.h"
#include "work/controller.h"

struct source;

enum source_kind {
	SOURCE_WATCH, /* the object's own key */
	SOURCE_OWNS,  /* of its owner of the primary informer's kind */
	SOURCE_MAP,   /* map gives them */
};

struct source_options {
	enum source_kind kind;
	struct informer *informer;
	struct informer *primary; /* OWNS: whose objects are the owners */
	bool any_owner;           /* OWNS: not only the one that is its controller */
	double resync;            /* as in listener_options */
	/* Whether the event counts; NULL: each does. */
	bool (*passes)(void *data, const struct notification *notification);
	/* MAP: gives the keys for object, the event's new or old one, through source_add. */
	void (*map)(void *data, const struct notification *notification, struct object *object);
	void *data;
};

struct source *source_new(struct controller *controller, const struct source_options *options);
void source_free(struct source *source); /* not from within its functions */
void source_open(struct source *source); /* as listener_open; again: nothing */

void source_close(struct source *source);         /* nothing newer comes; what waits still brings its keys */
size_t source_depth(const struct source *source); /* events that wait */

/* Within map: this key, for the event under way. */
void source_add(struct source *source, const char *key, size_t length);

#endif
