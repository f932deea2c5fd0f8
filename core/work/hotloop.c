#include "work/hotloop.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

ALLOC_TYPE(hot_type, "hot key");

#define FIRST_DELAY 1.0
#define LONGEST_DELAY 30.0

struct hot {
	struct list node;   /* in hotloop->returns */
	double since, last; /* clock_now's scale: of the window, and of the last return */
	unsigned count;     /* in the window */
	double delay;       /* of the last return; 0 while the key is not hot */
	size_t length;
	char key[];
};

/* How many keys one turn forgets at most, so that others get theirs. */
#define MOST_AT_ONCE 1000

static void forget(struct hotloop *hotloop, struct hot *hot)
{
	strmap_remove(&hotloop->keys, hot->key, hot->length);
	list_remove(&hot->node);
	alloc_object_free(&hot_type, hot);
}

static struct hot *first_of(const struct hotloop *hotloop)
{
	return LIST_ENTRY(hotloop->returns.next, struct hot, node);
}

static double quiet_at(const struct hot *hot)
{
	return hot->last + HOTLOOP_QUIET;
}

static void on_sweep(void *data)
{
	struct hotloop *hotloop = data;
	double now = clock_now();
	for (int i = 0; i < MOST_AT_ONCE && !list_is_empty(&hotloop->returns); i++) {
		if (now < quiet_at(first_of(hotloop)))
			break;
		forget(hotloop, first_of(hotloop));
	}
	if (!list_is_empty(&hotloop->returns))
		loop_timer_start(hotloop->loop, &hotloop->sweep, quiet_at(first_of(hotloop)) - now);
}

void hotloop_init(struct hotloop *hotloop, struct loop *loop)
{
	memset(hotloop, 0, sizeof(*hotloop));
	hotloop->loop = loop;
	strmap_init(&hotloop->keys);
	list_init(&hotloop->returns);
	loop_timer_init(&hotloop->sweep, on_sweep, hotloop);
}

void hotloop_fini(struct hotloop *hotloop)
{
	loop_timer_stop(hotloop->loop, &hotloop->sweep);
	while (!list_is_empty(&hotloop->returns))
		forget(hotloop, first_of(hotloop));
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
	hot = alloc_object(&hot_type, sizeof(*hot) + length);
	list_init(&hot->node);
	hot->length = length;
	memcpy(hot->key, key, length);
	hot->since = hot->last = clock_now();
	strmap_put(&hotloop->keys, key, length, hot);
	if (!loop_timer_active(&hotloop->sweep))
		loop_timer_start(hotloop->loop, &hotloop->sweep, HOTLOOP_QUIET);
	return hot;
}

static void count(struct hotloop *hotloop, struct hot *hot)
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
	list_remove(&hot->node);
	list_add_tail(&hotloop->returns, &hot->node);
}

struct hotloop_verdict hotloop_returned(struct hotloop *hotloop, const char *key, size_t length, const char *version)
{
	struct hotloop_verdict verdict = {.own = is_own(hotloop, key, length, version)};
	if (!verdict.own)
		return verdict;
	struct hot *hot = hot_of(hotloop, key, length);
	count(hotloop, hot);
	if (hot->delay > 0)
		hot->delay = fmin(hot->delay * 2, LONGEST_DELAY);
	else if (hot->count > HOTLOOP_MOST) {
		hot->delay = FIRST_DELAY;
		verdict.news = true;
	}
	verdict.delay = hot->delay;
	return verdict;
}
