/* consumer: one add_event_handler of a script: takes notifications from its listener, one at a time and in order, lets
 * its filter judge them, and calls the functions. */
#ifndef PERILUNE_SCRIPT_CONSUMER_H
#define PERILUNE_SCRIPT_CONSUMER_H

#include "script/script.h"

struct fields;
struct hook;

struct consumer_options {
	struct script_factory *factory;
	struct informer *informer;
	int functions[3];      /* registry references by enum notification_type; LUA_NOREF for none. Taken */
	struct fields *fields; /* taken; NULL for whole objects */
	struct hook *filter;   /* taken; NULL: all objects */
	double resync;
	bool every_event;
};

/* place: where the script adds it, "init.lua:12"; borrowed for the call. */
struct consumer *consumer_new(const struct consumer_options *options, const char *place);
/* Cancels its running call. The script's end calls it, and consumer_remove. */
void consumer_free(struct consumer *consumer);
void consumer_remove(struct consumer *consumer); /* no new calls; freed when the running one has ended */

/* A number that no other consumer of the program has or had; and the way back, NULL when it is gone. */
unsigned consumer_id(const struct consumer *consumer);
struct consumer *consumer_find(const struct script *script, unsigned id);

struct script_factory *consumer_factory(const struct consumer *consumer);
struct informer *consumer_informer(const struct consumer *consumer);
void consumer_open(struct consumer *consumer);             /* again: nothing */
void consumer_close(struct consumer *consumer);            /* nothing newer comes; what waits is still told */
bool consumer_is_drained(const struct consumer *consumer); /* nothing waits, and no call runs */
void consumer_stop(struct consumer *consumer);             /* no new calls; the running one goes on */
const char *consumer_place(const struct consumer *consumer);
bool consumer_has_synced(const struct consumer *consumer);
size_t consumer_depth(const struct consumer *consumer);
double consumer_age(const struct consumer *consumer);
struct consumer *consumer_of_node(struct list *node);

#endif
