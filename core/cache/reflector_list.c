/* LIST: pages in, one REPLACE out. Each page is cut into items while it arrives; nobody sees any of them before the
 * last page is whole. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/reflector_private.h"
#include "kube/status.h"
#include "kube/watch_list.h"

#define USUAL_LIMIT 500

static void request_page(struct reflector *reflector);

static void drop_objects(struct listing *list)
{
	for (size_t i = 0; i < list->count; i++)
		object_unref(list->objects[i]);
	if (list->untidy)
		strmap_fini(&list->places);
	list->untidy = false;
	alloc_free(list->objects);
	list->objects = NULL;
	list->count = list->capacity = 0;
}

void reflector_end_list(struct reflector *reflector)
{
	struct listing *list = &reflector->list;
	split_free(list->split);
	list->split = NULL;
	alloc_free(list->token);
	list->token = NULL;
	drop_objects(list);
}

/* A watch cache answers "0" whole whatever the limit, and would be passed by at any other version if there were one. So
 * paging is asked of it only where it has shown that it pages, and of etcd, which "" reads, always. */
static int choose_limit(const struct reflector *reflector, const char *asked)
{
	if (reflector->options.page_size)
		return reflector->options.page_size;
	return reflector->paged || !*asked || !strcmp(asked, "0") ? USUAL_LIMIT : 0;
}

void reflector_list(struct reflector *reflector, const char *asked, bool whole)
{
	struct listing *list = &reflector->list;
	reflector_end_list(reflector);
	strcpy(list->asked, asked);
	list->version[0] = '\0';
	list->asked_at = clock_now();
	list->limit = whole ? 0 : choose_limit(reflector, asked);
	list->page = 1;
	list->bytes = list->counted = list->counted_bytes = 0;
	reflector->counts.lists++;
	reflector->state = REFLECTOR_CONNECTING;
	request_page(reflector);
}

static void add_object(struct listing *list, struct object *object)
{
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? list->capacity * 2 : 64;
		list->objects = alloc_resize(list->objects, list->capacity * sizeof(*list->objects));
	}
	list->objects[list->count++] = object;
}

/* The same uid and resourceVersion mean the same object, except where the cluster itself has gone back in time. */
static struct object *find_known(struct reflector *reflector, const struct json_meta *meta)
{
	if (!*reflector->list.asked || !reflector->events.on_known)
		return NULL;
	struct object *known = reflector->events.on_known(reflector->data, meta);
	return known ? object_ref(known) : NULL;
}

int reflector_take_item(struct reflector *reflector, const struct outline *item, const struct json_meta *meta,
			struct err *err)
{
	struct object *object = find_known(reflector, meta);
	if (!object)
		object = reflector_object(reflector, item, meta, err);
	if (!object)
		return -1;
	add_object(&reflector->list, object);
	return 0;
}

static int on_item(void *data, const struct outline *item, struct err *err)
{
	struct reflector *reflector = data;
	struct json_meta meta;
	if (outline_meta(item, &meta))
		return err_set(err, "", "an item of the list has no metadata");
	if (!reflector_is_in_scope(reflector, &meta)) {
		reflector_skip(reflector, &meta);
		return 0;
	}
	if (reflector_take_item(reflector, item, &meta, err))
		return err_prefix(err, "item %zu of the list", reflector->list.count + 1);
	return 0;
}

static void on_head(void *data, const struct http_head *head)
{
	struct reflector *reflector = data;
	if (head->status < 200 || head->status > 299)
		return;
	reflector->state = REFLECTOR_LISTING;
	reflector_guard(reflector);
	reflector_changed(reflector);
}

static void on_chunk(void *data, const char *bytes, size_t length)
{
	struct reflector *reflector = data;
	struct listing *list = &reflector->list;
	struct err err;
	if (split_feed(list->split, bytes, length, &err)) {
		reflector_move(reflector, MOVE_LIST_LATER, &err);
		return;
	}
	list->counted = list->count;
	list->counted_bytes = list->bytes + split_bytes(list->split);
	reflector_changed(reflector);
}

bool reflector_version_is_too_large(const struct err *err, struct json_slice body)
{
	return (body.data && status_is_too_large_version(body)) || strstr(err->message, "Too large resource version");
}

/* The LIST rows of the table. */
static enum move choose_move(const struct reflector *reflector, const struct err *err, struct json_slice body)
{
	const struct listing *list = &reflector->list;
	if (err->code == 404)
		return MOVE_ABSENT;
	/* Some servers page whatever they are asked for. */
	if (err->code == 410 && list->token && list->limit && !strcmp(err->reason, "Expired"))
		return MOVE_LIST_WHOLE;
	/* At "" there is nothing left to fall back to. */
	if ((err->code == 410 || reflector_version_is_too_large(err, body)) && *list->asked)
		return MOVE_LIST_TRUTH;
	return MOVE_LIST_LATER;
}

/* A server that does not know a resourceVersion yet asks to wait for it, and may do so for ever: its log began anew. */
static void on_wait(void *data, const struct err *err, double seconds)
{
	struct reflector *reflector = data;
	struct json_slice none = {NULL, 0};
	if (reflector_version_is_too_large(err, none) && *reflector->list.asked)
		reflector_move(reflector, MOVE_LIST_TRUTH, err);
	else
		reflector_told_to_wait(reflector, err, seconds);
}

/* An answer with success that is no list must not empty the cache. */
static int check_list(struct json_slice rest, struct err *err)
{
	struct json_slice metadata = json_get(rest, "metadata");
	bool single = json_get(metadata, "name").data || json_get(metadata, "uid").data;
	if (status_is(rest) || json_type(metadata) != JSON_OBJECT || single)
		return err_set(err, "", "the answer is no list");
	return 0;
}

static int take_version(struct listing *list, struct json_slice metadata, struct err *err)
{
	char *version = json_string_copy(json_get(metadata, "resourceVersion"));
	bool fits = !version || strlen(version) < VERSION_SIZE;
	if (list->page == 1)
		strcpy(list->version, version && fits ? version : "");
	alloc_free(version);
	return fits ? 0 : err_set(err, "", "the list's resourceVersion is longer than %d bytes", OBJECT_VERSION_MAX);
}

/* NULL when it was the last page. */
static char *next_token(struct json_slice metadata)
{
	char *token = json_string_copy(json_get(metadata, "continue"));
	if (token && *token)
		return token;
	alloc_free(token);
	return NULL;
}

static struct delta *make_replace(struct reflector *reflector, const char *version)
{
	struct listing *list = &reflector->list;
	struct delta *delta = delta_new(DELTA_REPLACE);
	delta->objects = list->objects;
	delta->count = list->count;
	delta->namespace = alloc_string(reflector->options.namespace);
	delta->truth = !*list->asked;
	delta->asked_at = list->asked_at;
	delta->version = alloc_string(version);
	list->objects = NULL;
	list->count = list->capacity = 0;
	return delta;
}

void reflector_replace(struct reflector *reflector, const char *version)
{
	struct delta *delta = make_replace(reflector, version);
	reflector->lost = reflector->cut_off = false;
	reflector->counts.last_event_at = clock_now();
	strcpy(reflector->version, version);
	reflector->events.on_delta(reflector->data, delta);
}

/* A watch-list that was refused where a LIST is answered will be refused the next time too. */
static void remember_refusal(struct reflector *reflector)
{
	if (reflector->unfit)
		watch_list_refused(reflector->options.cluster->watch_list, reflector->options.resource);
	reflector->unfit = false;
	reflector->cut_initials = 0;
}

static void finish_list(struct reflector *reflector)
{
	struct listing *list = &reflector->list;
	/* Only of the first list is it known that a cache could have answered it and paged all the same. */
	reflector->paged |= list->page > 1 && !strcmp(list->asked, "0");
	remember_refusal(reflector);
	if (!reflector->watch_failed)
		reflector_clear_error(reflector);
	reflector_replace(reflector, list->version);
	if (!reflector->ended)
		reflector_move(reflector, MOVE_WATCH, NULL);
}

static int finish_page(struct reflector *reflector, struct err *err)
{
	struct listing *list = &reflector->list;
	if (split_finish(list->split, err))
		return -1;
	struct json_slice rest = split_rest(list->split), metadata = json_get(rest, "metadata");
	if (check_list(rest, err) || take_version(list, metadata, err))
		return -1;
	alloc_free(list->token);
	list->token = next_token(metadata);
	list->bytes += split_bytes(list->split);
	return 0;
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct reflector *reflector = data;
	struct listing *list = &reflector->list;
	struct err why;
	reflector->request = NULL;
	if (err) {
		reflector_move(reflector, choose_move(reflector, err, body), err);
	} else if (finish_page(reflector, &why)) {
		reflector_move(reflector, MOVE_LIST_LATER, &why);
	} else if (list->token) {
		list->page++;
		request_page(reflector);
		reflector_changed(reflector);
	} else {
		finish_list(reflector);
	}
}

/* Later pages carry no resourceVersion: the token does. */
static void append_query(const struct reflector *reflector, struct buf *query)
{
	const struct listing *list = &reflector->list;
	if (list->token)
		request_query_add(query, "continue", list->token);
	reflector_add_selectors(reflector, query);
	if (list->limit)
		buf_append_format(query, "%slimit=%d", query->length ? "&" : "", list->limit);
	if (!list->token && *list->asked)
		request_query_add(query, "resourceVersion", list->asked);
}

static void request_page(struct reflector *reflector)
{
	static const struct request_events events = {on_head, on_chunk, on_wait, on_done};
	struct listing *list = &reflector->list;
	struct buf query;
	buf_init(&query, 0);
	append_query(reflector, &query);
	split_free(list->split);
	list->split = split_new(OBJECT_BYTES_MAX, on_item, reflector);
	reflector_request(reflector, &query, true, &events, 0);
	buf_fini(&query);
}
