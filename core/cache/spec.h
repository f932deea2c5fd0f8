/* spec: what an informer was asked for, checked and copied. */
#ifndef PERILUNE_CACHE_SPEC_H
#define PERILUNE_CACHE_SPEC_H

#include "cache/informer.h"

/* All owned. Namespaces are sorted and each is named once. */
struct spec {
	char *api_version, *kind, *resource;
	char **namespaces;
	size_t namespace_count;
	char *namespace_text; /* "a,b"; "" for all */
	char *label_selector, *field_selector;
	char *label; /* "apps/v1/Deployment shop app=web" */
	char *scope; /* the identity without the kind, as one text */
	int page_size;
	bool raw;
};

/* What is dropped where neither drop nor keep is given. */
extern const char *const informer_usual_drop[1];

/* 0, or -1 with err: then spec holds nothing. */
int spec_init(struct spec *spec, const struct informer_spec *from, struct err *err);
void spec_fini(struct spec *spec);

#endif
