#include "net/mux.h"

#include <pthread.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <ev.h>

#include "base/alloc.h"
#include "net/loop_ev.h"
#include "net/mux_gate.h"
#include "net/mux_transfer.h"

ALLOC_TYPE(mux_type, "mux");
ALLOC_TYPE(pool_type, "mux_pool");
ALLOC_TYPE(watch_type, "mux_watch");

/* One curl multi. A retired one is replaced by the next as the mux's current, and is freed when its last transfer has
 * gone. */
struct mux_pool {
	struct list node; /* in mux->pools */
	struct mux *mux;
	CURLM *multi;
	ev_timer timeout;
	struct list transfers;
	unsigned running;
	struct list watches;
	unsigned holders; /* transfers that hold: as long as there are any, no watch is active */
	bool overdue;     /* the time-out has passed meanwhile */
	struct mux_gate gate;
	struct loop_job flush;
};

struct mux {
	struct loop *loop;
	struct mux_options options;
	struct list pools;
	struct mux_pool *current; /* NULL: the next transfer makes one */
};

/* A socket of libcurl's. */
struct watch {
	struct list node; /* in its pool's watches */
	ev_io watcher;
	struct mux_pool *pool;
};

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void collect_ends(struct mux_pool *pool)
{
	int left;
	for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));) {
		if (message->msg != CURLMSG_DONE)
			continue;
		CURLcode code = message->data.result;
		struct mux_transfer *transfer;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
		transfer->whole = code == CURLE_OK;
		transfer->on_end(transfer, code);
	}
}

static void act(struct mux_pool *pool, curl_socket_t fd, int happened)
{
	int running;
	curl_multi_socket_action(pool->multi, fd, happened, &running);
	collect_ends(pool);
}

static void on_ready(struct ev_loop *ev, ev_io *watcher, int events)
{
	(void)ev;
	struct watch *watch = watcher->data;
	int happened = 0;
	if (events & EV_READ)
		happened |= CURL_CSELECT_IN;
	if (events & EV_WRITE)
		happened |= CURL_CSELECT_OUT;
	if (events & EV_ERROR)
		happened |= CURL_CSELECT_ERR;
	act(watch->pool, watcher->fd, happened);
}

static void set_timeout(struct mux_pool *pool, long milliseconds);

/* libcurl says a time-out once: what is left of it after this is asked for, so that none is lost and none ticks for
 * nothing. */
static void on_timeout(struct ev_loop *ev, ev_timer *watcher, int events)
{
	(void)ev, (void)events;
	struct mux_pool *pool = watcher->data;
	long left = -1;
	pool->overdue = pool->holders > 0;
	if (pool->overdue)
		return; /* libcurl may read in it, too */
	act(pool, CURL_SOCKET_TIMEOUT, 0);
	if (!ev_is_active(&pool->timeout) && curl_multi_timeout(pool->multi, &left) == CURLM_OK && left >= 0)
		set_timeout(pool, left ? left : 1);
}

static void free_watch(void *object)
{
	alloc_object_free(&watch_type, object);
}

/* Freed later: this may run inside curl_multi_socket_action of this very socket's watcher. */
static void forget_watch(struct mux_pool *pool, struct watch *watch)
{
	list_remove(&watch->node);
	ev_io_stop(loop_ev(pool->mux->loop), &watch->watcher);
	loop_free_later(pool->mux->loop, free_watch, watch);
}

static struct watch *watch_new(struct mux_pool *pool, curl_socket_t fd)
{
	struct watch *watch = alloc_object(&watch_type, sizeof(*watch));
	watch->pool = pool;
	list_init(&watch->node);
	list_add_tail(&pool->watches, &watch->node);
	ev_io_init(&watch->watcher, on_ready, fd, 0);
	watch->watcher.data = watch;
	curl_multi_assign(pool->multi, fd, watch);
	return watch;
}

static int on_socket_wish(CURL *easy, curl_socket_t fd, int what, void *data, void *assigned)
{
	(void)easy;
	struct mux_pool *pool = data;
	struct ev_loop *ev = loop_ev(pool->mux->loop);
	struct watch *watch = assigned;
	if (what == CURL_POLL_REMOVE) {
		if (watch)
			forget_watch(pool, watch);
		curl_multi_assign(pool->multi, fd, NULL);
		return 0;
	}
	if (!watch)
		watch = watch_new(pool, fd);
	int events = (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0);
	ev_io_stop(ev, &watch->watcher);
	ev_io_set(&watch->watcher, fd, events);
	if (!pool->holders)
		ev_io_start(ev, &watch->watcher);
	return 0;
}

static void set_timeout(struct mux_pool *pool, long milliseconds)
{
	struct ev_loop *ev = loop_ev(pool->mux->loop);
	ev_timer_stop(ev, &pool->timeout);
	if (milliseconds < 0)
		return;
	ev_now_update(ev);
	/* Told of a time-out too early, libcurl does nothing; hence the millisecond. */
	ev_timer_set(&pool->timeout, milliseconds ? ((double)milliseconds + 1) / 1000 : 0, 0);
	ev_timer_start(ev, &pool->timeout);
}

void mux_hold(struct mux_transfer *transfer)
{
	struct mux_pool *pool = transfer->pool;
	if (!pool || transfer->holds)
		return;
	transfer->holds = true;
	if (pool->holders++)
		return;
	LIST_EACH (&pool->watches, node)
		ev_io_stop(loop_ev(pool->mux->loop), &LIST_ENTRY(node, struct watch, node)->watcher);
}

void mux_release(struct mux_transfer *transfer)
{
	struct mux_pool *pool = transfer->pool;
	if (!pool || !transfer->holds)
		return;
	transfer->holds = false;
	if (--pool->holders)
		return;
	LIST_EACH (&pool->watches, node)
		ev_io_start(loop_ev(pool->mux->loop), &LIST_ENTRY(node, struct watch, node)->watcher);
	if (pool->overdue)
		set_timeout(pool, 0);
	pool->overdue = false;
}

static int on_timeout_wish(CURLM *multi, long milliseconds, void *data)
{
	(void)multi;
	set_timeout(data, milliseconds);
	return 0;
}

static void begin(struct mux_transfer *transfer)
{
	if (curl_multi_add_handle(transfer->pool->multi, transfer->easy))
		transfer->on_end(transfer, CURLE_FAILED_INIT);
}

/* libcurl 7.88.1 leaves the reset of a stream in its buffer until something else is sent on the connection, and the
 * server would go on with what nobody reads: for a watch of a quiet kind about a minute (measured). The end of a pause
 * flushes; this one is of sending, so it holds up nothing that comes in. */
static void flush_resets(void *data)
{
	struct mux_pool *pool = data;
	LIST_EACH (&pool->transfers, node) {
		struct mux_transfer *transfer = LIST_ENTRY(node, struct mux_transfer, node);
		if (!transfer->connected)
			continue;
		curl_easy_pause(transfer->easy, CURLPAUSE_SEND);
		curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
	}
}

/* Before its end. Alone on its connection a stream has no sibling that could flush its reset, so an endless one takes
 * the connection with it. */
static void abandon(struct mux_transfer *transfer)
{
	curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, transfer->endless ? 1L : 0L);
	loop_post(transfer->pool->mux->loop, &transfer->pool->flush);
}

static struct mux_pool *pool_new(struct mux *mux)
{
	struct mux_pool *pool = alloc_object(&pool_type, sizeof(*pool));
	pool->mux = mux;
	list_init(&pool->node);
	list_add_tail(&mux->pools, &pool->node);
	list_init(&pool->transfers);
	list_init(&pool->watches);
	loop_job_init(&pool->flush, flush_resets, pool);
	mux_gate_init(&pool->gate, mux->loop, begin);
	ev_timer_init(&pool->timeout, on_timeout, 0, 0);
	pool->timeout.data = pool;
	pool->multi = curl_multi_init();
	curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
	curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
	curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
	curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
	curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	curl_multi_setopt(pool->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)mux->options.max_streams);
	curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)mux->options.max_connections);
	return pool;
}

static void pool_free(struct mux_pool *pool)
{
	loop_job_cancel(&pool->flush);
	curl_multi_cleanup(pool->multi);
	for (struct list *node; (node = list_pop(&pool->watches));)
		forget_watch(pool, LIST_ENTRY(node, struct watch, node));
	ev_timer_stop(loop_ev(pool->mux->loop), &pool->timeout);
	mux_gate_fini(&pool->gate);
	list_remove(&pool->node);
	alloc_object_free(&pool_type, pool);
}

struct mux *mux_new(struct loop *loop, const struct mux_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, init_curl);
	struct mux *mux = alloc_object(&mux_type, sizeof(*mux));
	mux->loop = loop;
	mux->options = *options;
	list_init(&mux->pools);
	return mux;
}

void mux_free(struct mux *mux)
{
	LIST_EACH (&mux->pools, node) {
		pool_free(LIST_ENTRY(node, struct mux_pool, node));
	}
	alloc_object_free(&mux_type, mux);
}

struct loop *mux_loop(struct mux *mux)
{
	return mux->loop;
}

static void free_when_unused(struct mux_pool *pool)
{
	if (pool != pool->mux->current && !pool->running)
		pool_free(pool);
}

void mux_retire(struct mux *mux)
{
	struct mux_pool *pool = mux->current;
	mux->current = NULL;
	if (pool)
		free_when_unused(pool);
}

/* The sockets are libcurl's, which finds them broken and closes them. One without a watch has nothing to write. */
void mux_cut(struct mux *mux)
{
	LIST_EACH (&mux->pools, pool_node)
		LIST_EACH (&LIST_ENTRY(pool_node, struct mux_pool, node)->watches, node)
			shutdown(LIST_ENTRY(node, struct watch, node)->watcher.fd, SHUT_RDWR);
}

void mux_each(const struct mux *mux, void (*fn)(void *data, struct mux_transfer *transfer), void *data)
{
	LIST_EACH (&mux->pools, pool_node)
		LIST_EACH (&LIST_ENTRY(pool_node, struct mux_pool, node)->transfers, node)
			fn(data, LIST_ENTRY(node, struct mux_transfer, node));
}

void mux_retire_for(const struct mux_transfer *transfer)
{
	if (transfer->pool && transfer->pool == transfer->pool->mux->current)
		mux_retire(transfer->pool->mux);
}

unsigned mux_running(const struct mux *mux)
{
	unsigned running = 0;
	LIST_EACH (&mux->pools, node) {
		running += LIST_ENTRY(node, struct mux_pool, node)->running;
	}
	return running;
}

void mux_add(struct mux *mux, struct mux_transfer *transfer)
{
	if (!mux->current)
		mux->current = pool_new(mux);
	struct mux_pool *pool = mux->current;
	transfer->pool = pool;
	list_add_tail(&pool->transfers, &transfer->node);
	pool->running++;
	transfer->whole = transfer->connected = false;
	curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 0L);
	mux_gate_enter(&pool->gate, transfer);
}

void mux_connected(struct mux_transfer *transfer)
{
	transfer->connected = true;
	mux_gate_settled(transfer);
}

void mux_unshared(struct mux_transfer *transfer)
{
	mux_gate_open(transfer);
}

void mux_remove(struct mux_transfer *transfer)
{
	struct mux_pool *pool = transfer->pool;
	if (!pool)
		return;
	mux_release(transfer);
	if (!transfer->whole)
		abandon(transfer);
	transfer->pool = NULL;
	curl_multi_remove_handle(pool->multi, transfer->easy); /* harmless for one that the gate still held */
	mux_gate_leave(transfer);
	list_remove(&transfer->node);
	pool->running--;
	free_when_unused(pool);
}

struct list *mux_siblings(const struct mux_transfer *transfer)
{
	return &transfer->pool->transfers;
}
