#include "cache/object.h"

#include <string.h>

#include "base/alloc.h"

ALLOC_TYPE(object_type, "object");

#define NAME_MAX_LENGTH 253               /* the API's longest name */
#define ESCAPED_MAX (6 * NAME_MAX_LENGTH) /* "\\u0061" is six bytes for one */

/* One allocation: the record, then "namespace/name", namespace, uid and resourceVersion, each with a NUL, then the
 * JSON. */
struct object {
	uint32_t count;
	uint32_t length; /* of the JSON */
	uint16_t key_length;
	uint16_t name, namespace, uid, version, json; /* offsets in data */
	char data[];
};

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

static uint16_t append(struct object *object, size_t *at, struct json_slice text, char end)
{
	size_t start = *at;
	memcpy(object->data + start, text.data, text.length);
	object->data[start + text.length] = end;
	*at += text.length + 1;
	return (uint16_t)start;
}

static struct object *build(struct json_slice bytes, const struct json_slice texts[PART_COUNT])
{
	struct json_slice namespace = texts[PART_NAMESPACE], name = texts[PART_NAME];
	size_t key_length = namespace.length ? namespace.length + 1 + name.length : name.length;
	size_t size = key_length + 1 + texts[PART_UID].length + 1 + texts[PART_VERSION].length + 1 + bytes.length + 1;
	if (namespace.length)
		size += namespace.length + 1;
	struct object *object = alloc_object(&object_type, offsetof(struct object, data) + size);
	object->count = 1;
	object->length = (uint32_t)bytes.length;
	object->key_length = (uint16_t)key_length;
	size_t at = 0;
	if (namespace.length)
		append(object, &at, namespace, '/');
	object->name = append(object, &at, name, '\0');
	/* Without a namespace, the NUL that ends the key is the empty text. */
	object->namespace = namespace.length ? append(object, &at, namespace, '\0') : (uint16_t)key_length;
	object->uid = append(object, &at, texts[PART_UID], '\0');
	object->version = append(object, &at, texts[PART_VERSION], '\0');
	object->json = append(object, &at, bytes, '\0');
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
		object = build(bytes, texts);
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

void object_unref(struct object *object)
{
	if (object && !--object->count)
		alloc_object_free(&object_type, object);
}

struct json_slice object_open(const struct object *object, struct buf *scratch)
{
	(void)scratch;
	return (struct json_slice){object->data + object->json, object->length};
}

bool object_same_content(const struct object *a, const struct object *b)
{
	return a == b || (a->length == b->length && !memcmp(a->data + a->json, b->data + b->json, a->length));
}

const char *object_namespace(const struct object *object)
{
	return object->data + object->namespace;
}

const char *object_name(const struct object *object)
{
	return object->data + object->name;
}

const char *object_uid(const struct object *object)
{
	return object->data + object->uid;
}

const char *object_version(const struct object *object)
{
	return object->data + object->version;
}

const char *object_key(const struct object *object, size_t *length)
{
	*length = object->key_length;
	return object->data;
}

size_t object_bytes(const struct object *object)
{
	return offsetof(struct object, data) + object->json + object->length + 1;
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
