/* script: one loaded script: its state, what it registered, and the tasks that serve it. */
#ifndef PERILUNE_SCRIPT_SCRIPT_H
#define PERILUNE_SCRIPT_SCRIPT_H

#include "cache/factory.h"
#include "net/loop.h"
#include "script/files.h"
#include "script/host.h"
#include "script/state.h"
#include "script/task.h"

struct consumer;

/* A factory that the script made (the default one included), and how its informers are watched for their sync. */
struct script_factory {
	struct list node; /* in script->factories */
	struct script *script;
	struct factory *factory;
	char *namespace;     /* of the default factory: that of its informers which name none; NULL for all */
	int defaults;        /* bind_defaults.c's; LUA_NOREF */
	struct list watched; /* struct script_watch: one for each informer, to be told when it syncs */
};

/* What the script wants called later: on_synced, on_shutdown, every. */
struct script_call {
	struct list node;
	struct script *script;
	int reference;   /* the function, in the registry */
	double interval; /* every: seconds; 0 otherwise */
	bool leader;     /* every: on the leader alone */
	struct loop_timer timer;
	struct loop_job job;
};

enum hook_kind { HOOK_TRANSFORM, HOOK_FILTER, HOOK_INDEX, HOOK_PREDICATE, HOOK_MAP, HOOK_KINDS };

struct script {
	struct list node; /* in the host's scripts */
	struct host *host;
	struct loop *loop;
	struct state *state;
	char *name;            /* "mirror" for mirror.lua and for mirror/init.lua */
	char *path;            /* of its main file */
	char *folder;          /* where its modules are */
	struct files files;    /* that it was loaded from */
	unsigned generation;   /* 1, and one more for each load that took its place */
	struct script *before; /* the generation that this one is to replace; NULL once it has */
	struct list factories, consumers;
	struct list reconcilers; /* reconciler.c's */
	struct list hooks;       /* hook.c's */
	struct list indexes;     /* bind_index.c's */
	struct list metrics;     /* bind_metric.c's */
	struct buf needs;        /* the rules of k8s.needs as JSON objects, a comma between two; bind_needs.c's */
	struct list leaving;     /* bind_informer.c's */
	struct list waits;       /* wait_for_cache_sync calls under way; bind_factory.c's */
	struct list mains, on_synced, on_shutdown, timers; /* struct script_call */
	struct script_factory *default_factory;
	unsigned registered; /* factories, informers, handlers and calls: C memory that no limit of the state counts */
	unsigned tasks;      /* calls under way */
	bool started;        /* script_start has been called */
	bool open;           /* its barrier has opened */
	bool gone;           /* its file is: it ends as soon as it may */
	bool ending;         /* no new calls but on_shutdown's */
	bool freeing;        /* what is cancelled now is no error */
	bool specs;          /* the busted runner */
	bool parked;         /* its state is, and this has been said */
	struct loop_job cut; /* of a parked one: what still waits */
	unsigned long events, errors;
	unsigned long hook_errors[HOOK_KINDS]; /* of those errors */
};

/* Loads the file at path as the main chunk. NULL with err: "file:line: what". before: the script whose place it is to
 * take, or NULL; it goes on meanwhile. */
struct script *script_new(struct host *host, const char *name, const char *path, const char *folder,
			  struct script *before, struct err *err);
/* A full-library script whose main is the embedded busted runner with these arguments. */
struct script *script_new_specs(struct host *host, const char *const *arguments, size_t count, struct err *err);
void script_free(struct script *script);
struct script *script_of(lua_State *L); /* NULL while the state is being made */

/* "folder/a/b.lua" or "folder/a/b/init.lua" for module name "a.b"; owned by the caller. NULL when there is none, or
 * when the name could leave the folder. */
char *script_module_path(const struct script *script, const char *name);

struct script_factory *script_factory_new(struct script *script); /* with nothing set */
struct script_factory *script_default_factory(struct script *script);
/* The factory's informer for spec, watched for its sync. Borrowed; NULL with err. */
struct informer *script_factory_informer(struct script_factory *factory, const struct informer_spec *spec,
					 struct err *err);
void script_factory_start(struct script_factory *factory);
void script_factory_shutdown(struct script_factory *factory);

/* Registers a call; takes the registry reference. list is one of the script's four; leader: of timers. */
void script_add_call(struct script *script, struct list *list, int reference, double interval, bool leader);

/* The steps of the host. */
/* Runs the mains, starts the factories, adds their informers. */
void script_start(struct script *script, struct barrier *barrier);
void script_opened(struct script *script); /* opens the listeners, runs on_synced, starts the timers */
/* Opens registrations whose factory has synced, and controllers all of whose informers have. */
void script_open_ready(struct script *script);
bool script_has_synced(const struct script *script); /* all of its informers, optional ones too */
/* All that it started and does not need as optional. */
bool script_factory_has_synced(const struct script_factory *factory);
/* The host has become the leader: what is marked so begins. Only once the script is open, at most once, and never
 * without leader election: what finds host_is_leader when it would begin need not wait for this. */
void script_leading(struct script *script);
bool script_has_leader(const struct script *script); /* a controller or timer of it is marked leader = true */
void script_cancel(struct script *script);           /* ends all its calls at once; none follows */
/* For a script that another generation replaces: handlers are told of no event that is newer than this, of those that
 * wait still; then, once they are, it ends as at a shutdown. Its controllers hear of all that comes until that end, as
 * a key that goes meanwhile is news for the one that gets their keys. */
void script_close(struct script *script);
bool script_is_drained(const struct script *script); /* no event waits */
size_t script_depth(const struct script *script);    /* events that wait for its handlers; 0 when it is parked */
void script_shutdown(struct script *script);         /* runs on_shutdown; no new events */
bool script_is_empty(const struct script *script);   /* it registered nothing, so nothing will be called */
bool script_is_idle(const struct script *script);    /* no call under way */

/* Each call that was counted in tasks ends here. */
void script_call_ended(struct script *script);
/* After each entry that may have been the last: where it has parked the state, that is said, and nothing of the script
 * is called any more until a reload. Its controllers' keys stay for the next generation. */
void script_note_state(struct script *script);
/* "init.lua:12" from "init.lua:12: attempt to …", in out; NULL when it does not begin so. */
const char *script_error_place(const struct err *err, char *out, size_t size);
/* One line: the error, its place and what it was about; counted. */
void script_log_error(struct script *script, const struct err *err, const char *what, const struct informer *informer,
		      const struct object *object);

#endif
