/* access: whether the API server lets this program do something, by its own word (a SelfSubjectAccessReview). */
#ifndef PERILUNE_KUBE_ACCESS_H
#define PERILUNE_KUBE_ACCESS_H

#include "kube/cluster.h"

/* What is asked about; all borrowed for the call. */
struct access_attributes {
	const char *verb;
	const char *group;     /* "" for the core group; "*" for all, as in the next one */
	const char *resource;  /* "pods", "pods/status" */
	const char *namespace; /* "" for all of them, and for kinds without namespaces */
	const char *name;      /* "" for all */
};

struct access;
/* err: why the server would not say; NULL when it has. */
typedef void (*access_fn)(void *data, bool allowed, const struct err *err);

/* Calls on_answer once, from the loop, unless cancelled. */
struct access *access_ask(struct cluster *cluster, const struct access_attributes *attributes, access_fn on_answer,
			  void *data);
void access_cancel(struct access *access);

#endif
