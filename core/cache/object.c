#include "cache/object.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/slab.h"
#include "cache/labels.h"

ALLOC_TYPE(object_type, "object");

#define NAME_MAX_LENGTH 253               /* the API's longest name */
#define ESCAPED_MAX (6 * NAME_MAX_LENGTH) /* "\\u0061" is six bytes for one */

/* Bytes. What is larger stays raw: it would hold the loop that has to open it, or to help. */
#define PACKED_MOST ((uint32_t)1024 * 1024)

/* Bytes that were not packed, or would not become smaller. */
struct raw {
	struct list node; /* in its line */
	struct object *object;
	struct object_line *line; /* NULL while it is in none */
	char json[];
};

#define UID_BYTES 16

/* The record, then "namespace/name", resourceVersion and uid: texts with a NUL each, the uid as 16 bytes where it is a
 * UUID. */
struct object {
	uint32_t count;
	uint32_t length;          /* of the JSON */
	uint32_t packed_length;   /* 0 when it is raw */
	uint8_t namespace_length; /* the API's names have 253 bytes at most */
	uint8_t name_length, version_length, uid_length;
	struct dictionary *dictionary; /* counted; NULL when it is raw */
	union {
		struct raw *raw;
		void *packed;
	};
	uint32_t labels : LABELS_BITS; /* the number of its label set */
	uint32_t ending : 1;           /* its deletion has begun */
	uint32_t binary_uid : 1;
	char text[];
};

static struct slab records;

static const char *const parts[] = {"namespace", "name", "uid", "resourceVersion"};
enum part { PART_NAMESPACE, PART_NAME, PART_UID, PART_VERSION, PART_COUNT };

/* Unescaped, or straight from the bytes where nothing is escaped, which is always so in practice. */
static int read_text(struct json_slice value, struct buf *scratch, struct json_slice *out)
{
	*out = (struct json_slice){"", 0};
	if (!value.data || json_type(value) == JSON_NULL)
		return 0;
	if (json_type(value) != JSON_STRING)
		return -1;
	*out = (struct json_slice){value.data + 1, value.length - 2};
	if (!memchr(out->data, '\\', out->length))
		return 0;
	if (out->length > ESCAPED_MAX)
		return 0; /* too long in any case; the check says so */
	if (!scratch->capacity)
		buf_reserve(scratch, PART_COUNT * ESCAPED_MAX); /* so that a later text does not move an earlier one */
	size_t before = scratch->length;
	if (json_string_append(value, scratch))
		return -1;
	*out = (struct json_slice){scratch->data + before, scratch->length - before};
	return 0;
}

static int check_text(enum part part, struct json_slice text, struct err *err)
{
	size_t most = part == PART_VERSION ? OBJECT_VERSION_MAX : NAME_MAX_LENGTH;
	if (text.length > most)
		return err_set(err, "", "an object's metadata.%s is longer than %zu bytes", parts[part], most);
	if (memchr(text.data, '\0', text.length))
		return err_set(err, "", "an object's metadata.%s holds a NUL", parts[part]);
	bool names = part == PART_NAME || part == PART_NAMESPACE;
	if (names && memchr(text.data, '/', text.length))
		return err_set(err, "", "an object's metadata.%s holds a slash", parts[part]);
	if (part == PART_NAME && !text.length)
		return err_set(err, "", "an object has no metadata.name");
	return 0;
}

static int read_texts(const struct json_meta *meta, struct buf *scratch, struct json_slice texts[PART_COUNT],
		      struct err *err)
{
	const struct json_slice values[] = {meta->namespace, meta->name, meta->uid, meta->resource_version};
	for (enum part part = 0; part < PART_COUNT; part++) {
		if (read_text(values[part], scratch, &texts[part]))
			return err_set(err, "", "an object's metadata.%s is no string", parts[part]);
		if (check_text(part, texts[part], err))
			return -1;
	}
	return 0;
}

static size_t key_length(const struct object *object)
{
	size_t namespace = object->namespace_length;
	return namespace + (namespace > 0) + object->name_length;
}

static const char *version_of(const struct object *object)
{
	return object->text + key_length(object) + 1;
}

static const char *uid_of(const struct object *object)
{
	return version_of(object) + object->version_length + 1;
}

static size_t record_size(const struct object *object)
{
	size_t uid = object->binary_uid ? UID_BYTES : (size_t)object->uid_length + 1;
	return offsetof(struct object, text) + key_length(object) + 1 + object->version_length + 1 + uid;
}

/* In lower case alone: what is packed has to come back letter for letter. */
static int lower_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_dash(size_t at)
{
	return at == 8 || at == 13 || at == 18 || at == 23;
}

/* False where text is not as the API writes a UUID. */
static bool read_uuid(struct json_slice text, uint8_t out[UID_BYTES])
{
	if (text.length != OBJECT_UID_SIZE - 1)
		return false;
	for (size_t i = 0, digits = 0; i < text.length; i++) {
		int digit = lower_digit(text.data[i]);
		if (is_dash(i) ? text.data[i] != '-' : digit < 0)
			return false;
		if (is_dash(i))
			continue;
		out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] << 4 | digit : digit);
		digits++;
	}
	return true;
}

static void write_uuid(const uint8_t from[UID_BYTES], char room[OBJECT_UID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0, taken = 0; i < OBJECT_UID_SIZE - 1; i++) {
		room[i] = '-';
		if (is_dash(i))
			continue;
		room[i] = digits[taken % 2 ? from[taken / 2] & 15 : from[taken / 2] >> 4];
		taken++;
	}
	room[OBJECT_UID_SIZE - 1] = '\0';
}

static char *append(char *to, struct json_slice text, char end)
{
	memcpy(to, text.data, text.length);
	to[text.length] = end;
	return to + text.length + 1;
}

static struct raw *new_raw(struct object *object, struct json_slice json)
{
	struct raw *raw = alloc_resize(NULL, offsetof(struct raw, json) + json.length);
	list_init(&raw->node);
	raw->object = object;
	raw->line = NULL;
	memcpy(raw->json, json.data, json.length);
	return raw;
}

static struct object *build(struct json_slice json, const struct json_slice texts[PART_COUNT],
			    const struct json_meta *meta)
{
	uint8_t uuid[UID_BYTES];
	struct json_slice namespace = texts[PART_NAMESPACE], uid = texts[PART_UID];
	struct object head = {
	    .count = 1,
	    .length = (uint32_t)json.length,
	    .namespace_length = (uint8_t) namespace.length,
	    .name_length = (uint8_t)texts[PART_NAME].length,
	    .version_length = (uint8_t)texts[PART_VERSION].length,
	    .uid_length = (uint8_t)uid.length,
	    .ending = meta->deletion_timestamp.data != NULL,
	    .binary_uid = read_uuid(uid, uuid),
	};
	if (!records.pieces)
		slab_init(&records);
	struct object *object = slab_take(&records, record_size(&head));
	alloc_count(&object_type, 1);
	memcpy(object, &head, offsetof(struct object, text));
	char *to = object->text;
	if (namespace.length)
		to = append(to, namespace, '/');
	to = append(to, texts[PART_NAME], '\0');
	to = append(to, texts[PART_VERSION], '\0');
	if (head.binary_uid)
		memcpy(to, uuid, UID_BYTES);
	else
		append(to, uid, '\0');
	object->labels = labels_take(meta->labels, (struct json_slice){object->text, key_length(object)});
	object->raw = new_raw(object, json);
	return object;
}

struct object *object_new_of(struct json_slice bytes, const struct json_meta *meta, struct err *err)
{
	if (bytes.length > OBJECT_BYTES_MAX) {
		err_set(err, "TooLarge", "an object of %zu bytes is too large", bytes.length);
		return NULL;
	}
	struct buf scratch;
	buf_init(&scratch, 0);
	struct json_slice texts[PART_COUNT];
	struct object *object = NULL;
	if (!read_texts(meta, &scratch, texts, err))
		object = build(bytes, texts, meta);
	buf_fini(&scratch);
	return object;
}

struct object *object_new(struct json_slice bytes, struct err *err)
{
	struct json_meta meta;
	if (json_meta(bytes, &meta)) {
		err_set(err, "", "an object's metadata is no object");
		return NULL;
	}
	return object_new_of(bytes, &meta, err);
}

struct object *object_ref(struct object *object)
{
	object->count++;
	return object;
}

static void leave_line(struct raw *raw)
{
	if (!raw->line)
		return;
	raw->line->bytes -= raw->object->length;
	raw->line = NULL;
	list_remove(&raw->node);
}

static void free_bytes(struct object *object)
{
	if (object->dictionary) {
		dictionary_drop(object->dictionary, object->packed, object->packed_length);
		dictionary_unref(object->dictionary);
	} else {
		leave_line(object->raw);
		alloc_free(object->raw);
	}
}

void object_unref(struct object *object)
{
	if (!object || --object->count)
		return;
	free_bytes(object);
	labels_give(object->labels);
	alloc_count(&object_type, -1);
	slab_give(&records, object, record_size(object));
}

struct json_slice object_open(const struct object *object, struct buf *scratch)
{
	if (!object->dictionary)
		return (struct json_slice){object->raw->json, object->length};
	struct json_slice packed = {object->packed, object->packed_length};
	buf_reset(scratch);
	char *to = buf_reserve(scratch, object->length);
	dictionary_open(object->dictionary, packed, to, object->length);
	to[object->length] = '\0';
	scratch->length = object->length;
	return (struct json_slice){to, object->length};
}

static bool same_json(const struct object *a, const struct object *b)
{
	struct buf scratch[2];
	buf_init(&scratch[0], 0);
	buf_init(&scratch[1], 0);
	struct json_slice one = object_open(a, &scratch[0]), other = object_open(b, &scratch[1]);
	bool same = !memcmp(one.data, other.data, one.length);
	buf_fini(&scratch[0]);
	buf_fini(&scratch[1]);
	return same;
}

bool object_is_packable(const struct object *object)
{
	return object->length <= PACKED_MOST;
}

bool object_is_only_mine(const struct object *object)
{
	return object->count == 1;
}

bool object_same_content(const struct object *a, const struct object *b)
{
	return a == b || (a->length == b->length && same_json(a, b));
}

const char *object_namespace(const struct object *object, size_t *length)
{
	*length = object->namespace_length;
	return object->text;
}

const char *object_name(const struct object *object)
{
	return object->text + key_length(object) - object->name_length;
}

const char *object_uid(const struct object *object, char room[OBJECT_UID_SIZE])
{
	if (!object->binary_uid)
		return uid_of(object);
	write_uuid((const uint8_t *)uid_of(object), room);
	return room;
}

bool object_same_uid(const struct object *a, const struct object *b)
{
	size_t size = a->binary_uid ? UID_BYTES : a->uid_length;
	return a->binary_uid == b->binary_uid && a->uid_length == b->uid_length && !memcmp(uid_of(a), uid_of(b), size);
}

bool object_has_uid(const struct object *object, const char *uid)
{
	char room[OBJECT_UID_SIZE];
	return !strcmp(object_uid(object, room), uid);
}

uint32_t object_labels(const struct object *object)
{
	return object->labels;
}

bool object_is_ending(const struct object *object)
{
	return object->ending;
}

const char *object_version(const struct object *object)
{
	return version_of(object);
}

const char *object_key(const struct object *object, size_t *length)
{
	*length = key_length(object);
	return object->text;
}

size_t object_length(const struct object *object)
{
	return object->length;
}

size_t object_held(const struct object *object)
{
	size_t bytes = object->dictionary ? object->packed_length : offsetof(struct raw, json) + object->length;
	return record_size(object) + bytes;
}

void object_line_init(struct object_line *line)
{
	list_init(&line->waiting);
	line->bytes = 0;
}

static struct raw *raw_of(struct list *node)
{
	return LIST_ENTRY(node, struct raw, node);
}

void object_line_fini(struct object_line *line)
{
	LIST_EACH (&line->waiting, node)
		leave_line(raw_of(node));
}

void object_line_add(struct object_line *line, struct object *object)
{
	assert(!object->dictionary && !object->raw->line);
	object->raw->line = line;
	list_add_tail(&line->waiting, &object->raw->node);
	line->bytes += object->length;
}

struct object *object_line_first(const struct object_line *line)
{
	return list_is_empty(&line->waiting) ? NULL : raw_of(line->waiting.next)->object;
}

struct object *object_line_next(const struct object_line *line, const struct object *object)
{
	struct list *next = object->raw->node.next;
	return next == &line->waiting ? NULL : raw_of(next)->object;
}

struct object *object_line_take(struct object_line *line)
{
	struct object *object = object_line_first(line);
	if (object)
		leave_line(object_ref(object)->raw);
	return object;
}

void object_set_packed(struct object *object, struct dictionary *dictionary, struct json_slice packed)
{
	free_bytes(object);
	object->dictionary = dictionary_ref(dictionary);
	object->packed_length = (uint32_t)packed.length;
	object->packed = dictionary_keep(dictionary, packed);
}

void object_pack(struct object *object, struct dictionary *dictionary, struct buf scratch[2])
{
	struct buf *packed = &scratch[1];
	if (object_is_packable(object) && !dictionary_pack(dictionary, object_open(object, &scratch[0]), packed))
		object_set_packed(object, dictionary, (struct json_slice){packed->data, packed->length});
	else if (!object->dictionary)
		leave_line(object->raw);
}

bool object_is_packed(const struct object *object, const struct dictionary *dictionary)
{
	return object->dictionary == dictionary;
}

/* Skips leading zeros, too. NULL when text is no integer. */
static const char *digits_of(const char *text, size_t *length)
{
	size_t all = strspn(text, "0123456789");
	if (!all || text[all])
		return NULL;
	size_t zeros = strspn(text, "0");
	if (zeros == all)
		zeros--;
	*length = all - zeros;
	return text + zeros;
}

int object_version_compare(const char *a, const char *b, bool *comparable)
{
	size_t a_length, b_length;
	const char *a_digits = digits_of(a, &a_length), *b_digits = digits_of(b, &b_length);
	*comparable = a_digits && b_digits;
	if (!*comparable)
		return strcmp(a, b) != 0;
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return memcmp(a_digits, b_digits, a_length);
}
