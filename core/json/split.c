#include "json/split.h"

#include "base/alloc.h"
#include "json/lex.h"
#include "json/piece.h"

ALLOC_TYPE(split_type, "split");

enum state {
	OPEN,      /* before the top-level brace */
	FIRST_KEY, /* a key or the end of the object */
	KEY,       /* a key */
	COLON,     /* behind a key */
	VALUE,     /* a member's value */
	AFTER_VALUE,
	FIRST_ITEM, /* an item or the end of the array */
	ITEM,       /* an item */
	AFTER_ITEM,
	DONE,
};

struct split {
	split_fn on_item;
	void *data;
	enum state state;
	bool key_is_items, items_seen;
	struct piece piece; /* the member or item that is being read */
	struct buf rest;    /* "{" and the other members so far, each with its colon and no space */
};

struct split *split_new(size_t item_limit, split_fn on_item, void *data)
{
	static const char *const way[] = {"metadata", NULL};
	struct split *split = alloc_object(&split_type, sizeof(*split));
	split->on_item = on_item;
	split->data = data;
	piece_init(&split->piece, item_limit, "a part of the list", way);
	buf_init(&split->rest, item_limit);
	buf_append_char(&split->rest, '{');
	return split;
}

void split_free(struct split *split)
{
	if (!split)
		return;
	piece_fini(&split->piece);
	buf_fini(&split->rest);
	alloc_object_free(&split_type, split);
}

static int add_to_rest(struct split *split, struct json_slice text, char before, char behind)
{
	struct buf *rest = &split->rest;
	if ((before && buf_append_char(rest, before)) || buf_append(rest, text.data, text.length) ||
	    (behind && buf_append_char(rest, behind)))
		return -1;
	return 0;
}

static int step_key(struct split *split, const char **at, const char *end, struct err *err)
{
	struct json_slice key;
	size_t offset = piece_offset(&split->piece, *at);
	if (!piece_is_open(&split->piece) && **at != '"')
		return lex_fail(err, offset, "a key in double quotes");
	int got = piece_read(&split->piece, at, end, &key, err);
	if (got <= 0)
		return got;
	split->key_is_items = json_string_equals(key, "items");
	if (split->key_is_items && split->items_seen)
		return lex_fail(err, offset, "no second \"items\"");
	if (split->key_is_items)
		split->items_seen = true;
	else if (add_to_rest(split, key, split->rest.length > 1 ? ',' : '\0', ':'))
		return piece_too_large(&split->piece, offset, err);
	piece_drop(&split->piece);
	split->state = COLON;
	return 1;
}

static int step_value(struct split *split, const char **at, const char *end, struct err *err)
{
	struct json_slice value;
	int got = piece_read(&split->piece, at, end, &value, err);
	if (got <= 0)
		return got;
	if (add_to_rest(split, value, '\0', '\0'))
		return piece_too_large(&split->piece, piece_offset(&split->piece, *at), err);
	piece_drop(&split->piece);
	split->state = AFTER_VALUE;
	return 1;
}

/* An empty Go slice is sent as null. */
static int step_items(struct split *split, const char **at, const char *end, struct err *err)
{
	if (!piece_is_open(&split->piece) && **at == '[') {
		++*at;
		split->state = FIRST_ITEM;
		return 1;
	}
	if (!piece_is_open(&split->piece) && **at != 'n')
		return lex_fail(err, piece_offset(&split->piece, *at), "\"items\" to be an array or null");
	struct json_slice null;
	int got = piece_read(&split->piece, at, end, &null, err);
	if (got <= 0)
		return got;
	piece_drop(&split->piece);
	split->state = AFTER_VALUE;
	return 1;
}

static int step_item(struct split *split, const char **at, const char *end, struct err *err)
{
	struct json_slice item;
	int got = piece_read(&split->piece, at, end, &item, err);
	if (got <= 0)
		return got;
	struct outline outline = piece_outline(&split->piece, item);
	if (split->on_item(split->data, &outline, err))
		return -1;
	piece_drop(&split->piece);
	split->state = AFTER_ITEM;
	return 1;
}

/* The states that one character moves on. */
static int step_sign(struct split *split, const char **at, struct err *err)
{
	static const struct {
		char signs[2];
		enum state next[2];
		const char *expected;
	} moves[] = {
	    [OPEN] = {{'{', '{'}, {FIRST_KEY, FIRST_KEY}, "'{'"},
	    [COLON] = {{':', ':'}, {VALUE, VALUE}, "':'"},
	    [AFTER_VALUE] = {{',', '}'}, {KEY, DONE}, "',' or '}'"},
	    [AFTER_ITEM] = {{',', ']'}, {ITEM, AFTER_VALUE}, "',' or ']'"},
	};
	if (split->state == DONE)
		return lex_fail(err, piece_offset(&split->piece, *at), "the end");
	for (int i = 0; i < 2; i++) {
		if (**at != moves[split->state].signs[i])
			continue;
		split->state = moves[split->state].next[i];
		++*at;
		if (split->state == DONE && buf_append_char(&split->rest, '}'))
			return piece_too_large(&split->piece, piece_offset(&split->piece, *at), err);
		return 1;
	}
	return lex_fail(err, piece_offset(&split->piece, *at), moves[split->state].expected);
}

/* One move. */
static int step(void *data, const char **at, const char *end, struct err *err)
{
	struct split *split = data;
	switch (split->state) {
	case FIRST_KEY:
		split->state = **at == '}' ? AFTER_VALUE : KEY;
		return 1;
	case FIRST_ITEM:
		split->state = **at == ']' ? AFTER_ITEM : ITEM;
		return 1;
	case KEY:
		return step_key(split, at, end, err);
	case VALUE:
		return split->key_is_items ? step_items(split, at, end, err) : step_value(split, at, end, err);
	case ITEM:
		return step_item(split, at, end, err);
	default:
		return step_sign(split, at, err);
	}
}

int split_feed(struct split *split, const char *bytes, size_t length, struct err *err)
{
	return piece_feed(&split->piece, bytes, length, step, split, err);
}

int split_finish(struct split *split, struct err *err)
{
	if (split->state != DONE)
		return err_set(err, "", "the list ended early, at byte %zu", split->piece.fed);
	return 0;
}

struct json_slice split_rest(const struct split *split)
{
	return (struct json_slice){split->rest.data, split->rest.length};
}

size_t split_bytes(const struct split *split)
{
	return split->piece.fed;
}
