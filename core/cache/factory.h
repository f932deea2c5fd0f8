/* factory: hands out shared informers. One pool for each cluster holds those that are alive; any number of factories
 * take from it. */
#ifndef PERILUNE_CACHE_FACTORY_H
#define PERILUNE_CACHE_FACTORY_H

#include "cache/barrier.h"
#include "cache/informer.h"
#include "cache/write.h"

struct pool;
struct pool *pool_new(struct cluster *cluster);
void pool_free(struct pool *pool); /* no factory may be left */
/* Visits the live informers in the order made, of those that share a watch the first: for /status and the like. */
void pool_each(struct pool *pool, void (*on_informer)(void *data, struct informer *informer), void *data);
/* Visits that object in each informer that holds it as the server tells it, or a part of that, until on_object returns
 * false. namespace is "" for cluster-scoped kinds. Borrowed until the store changes. */
void pool_each_object(struct pool *pool, const struct resource *resource, const char *namespace, const char *name,
		      bool (*on_object)(void *data, const struct informer *informer, const struct object *object),
		      void *data);

/* A write that the server has answered with success, and that was no dry run: from here on the caches of its resource
 * show it. */
void pool_note_write(struct pool *pool, const struct write *write);

struct factory;
struct factory *factory_new(struct pool *pool);
void factory_free(struct factory *factory); /* shuts down first */

/* Created on the first call for a spec, shared after it, across factories too. Borrowed; lives until this factory's
 * shutdown at least. After shutdown or for a malformed spec: NULL with err. */
struct informer *factory_informer(struct factory *factory, const struct informer_spec *spec, struct err *err);
/* False for what the factory asked for as optional alone. */
bool factory_needs(const struct factory *factory, const struct informer *informer);
/* Those that are started; those that it does not need as optional ones. */
void factory_add_to_barrier(struct factory *factory, struct barrier *barrier);
void factory_start(struct factory *factory);    /* starts those not yet started; nothing after shutdown */
void factory_shutdown(struct factory *factory); /* gives up its informers; those that nobody else uses have ended when
						   it returns. Twice is harmless */
bool factory_is_shut_down(const struct factory *factory);
void factory_each(struct factory *factory, void (*on_informer)(void *data, struct informer *informer),
		  void *data); /* in the order asked for */

#endif
