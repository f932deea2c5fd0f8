#include "work/hotloop.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(hot_type, "hot key");

#define FIRST_DELAY 1.0
#define LONGEST_DELAY 30.0

struct hot {
	double since, last; /* clock_now's scale: of the window, and of the last return */
	unsigned count;     /* in the window */
	double delay;       /* of the last return; 0 while the key is not hot */
};

static void forget(struct hotloop *hotloop, const char *key, size_t length)
{
	alloc_object_free(&hot_type, strmap_remove(&hotloop->keys, key, length));
}

/* One that is quiet, so that the map need not be walked in the order of anything: NULL when there is none. */
static const char *find_quiet(const struct hotloop *hotloop, size_t *length)
{
	const char *key;
	void *value;
	for (size_t cursor = 0; strmap_next(&hotloop->keys, &cursor, &key, length, &value);)
		if (clock_now() - ((const struct hot *)value)->last >= HOTLOOP_QUIET)
			return key;
	return NULL;
}

static void on_sweep(void *data)
{
	struct hotloop *hotloop = data;
	size_t length;
	for (const char *key; (key = find_quiet(hotloop, &length));) {
		char *copy = alloc_text(key, length); /* the map's own goes with the entry */
		forget(hotloop, copy, length);
		alloc_free(copy);
	}
	if (hotloop->keys.count)
		loop_timer_start(hotloop->loop, &hotloop->sweep, HOTLOOP_QUIET);
}

void hotloop_init(struct hotloop *hotloop, struct loop *loop)
{
	memset(hotloop, 0, sizeof(*hotloop));
	hotloop->loop = loop;
	strmap_init(&hotloop->keys);
	loop_timer_init(&hotloop->sweep, on_sweep, hotloop);
}

void hotloop_fini(struct hotloop *hotloop)
{
	const char *key;
	size_t length;
	void *value;
	loop_timer_stop(hotloop->loop, &hotloop->sweep);
	for (size_t cursor = 0; strmap_next(&hotloop->keys, &cursor, &key, &length, &value);)
		alloc_object_free(&hot_type, value);
	strmap_fini(&hotloop->keys);
}

void hotloop_wrote(struct hotloop *hotloop, const char *key, size_t length, const char *version)
{
	size_t place = hotloop->wrote % HOTLOOP_WRITES;
	if (!*version || strlen(version) > OBJECT_VERSION_MAX)
		return;
	hotloop->writes[place].key = strmap_hash(key, length);
	strcpy(hotloop->writes[place].version, version);
	hotloop->wrote++;
}

static bool is_own(const struct hotloop *hotloop, const char *key, size_t length, const char *version)
{
	size_t count = hotloop->wrote < HOTLOOP_WRITES ? hotloop->wrote : HOTLOOP_WRITES;
	uint64_t hash = count ? strmap_hash(key, length) : 0;
	for (size_t i = 0; i < count; i++)
		if (hotloop->writes[i].key == hash && !strcmp(hotloop->writes[i].version, version))
			return true;
	return false;
}

static struct hot *hot_of(struct hotloop *hotloop, const char *key, size_t length)
{
	struct hot *hot = strmap_get(&hotloop->keys, key, length);
	if (hot)
		return hot;
	hot = alloc_object(&hot_type, sizeof(*hot));
	hot->since = hot->last = clock_now();
	strmap_put(&hotloop->keys, key, length, hot);
	if (!loop_timer_active(&hotloop->sweep))
		loop_timer_start(hotloop->loop, &hotloop->sweep, HOTLOOP_QUIET);
	return hot;
}

static void count(struct hot *hot)
{
	double now = clock_now();
	if (now - hot->last >= HOTLOOP_QUIET)
		hot->delay = 0;
	if (now - hot->since >= HOTLOOP_WINDOW) {
		hot->since = now;
		hot->count = 0;
	}
	hot->last = now;
	hot->count++;
}

struct hotloop_verdict hotloop_returned(struct hotloop *hotloop, const char *key, size_t length, const char *version)
{
	struct hotloop_verdict verdict = {.own = is_own(hotloop, key, length, version)};
	if (!verdict.own)
		return verdict;
	struct hot *hot = hot_of(hotloop, key, length);
	count(hot);
	if (hot->delay > 0)
		hot->delay = fmin(hot->delay * 2, LONGEST_DELAY);
	else if (hot->count > HOTLOOP_MOST) {
		hot->delay = FIRST_DELAY;
		verdict.news = true;
	}
	verdict.delay = hot->delay;
	return verdict;
}
