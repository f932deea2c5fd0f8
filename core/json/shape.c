#include "json/shape.h"

#include <string.h>

#include "base/alloc.h"
#include "json/lex.h"

ALLOC_TYPE(shape_type, "json_shape");

struct json_shape {
	struct json_shape *next; /* of the same object */
	struct json_shape *members;
	bool whole; /* then there are no members */
	size_t length;
	char key[];
};

static struct json_shape *make(const char *key, size_t length, struct json_shape *next)
{
	struct json_shape *shape = alloc_object(&shape_type, sizeof(*shape) + length);
	shape->next = next;
	shape->length = length;
	memcpy(shape->key, key, length);
	return shape;
}

struct json_shape *json_shape_new(void)
{
	return make("", 0, NULL);
}

/* Recursion goes as deep as the longest path. */
static void free_members(struct json_shape *shape)
{
	for (struct json_shape *member; (member = shape->members);) {
		shape->members = member->next;
		json_shape_free(member);
	}
}

void json_shape_free(struct json_shape *shape)
{
	if (!shape)
		return;
	free_members(shape);
	alloc_object_free(&shape_type, shape);
}

static struct json_shape *member_of(struct json_shape *shape, const char *key, size_t length)
{
	for (struct json_shape *member = shape->members; member; member = member->next)
		if (member->length == length && !memcmp(member->key, key, length))
			return member;
	return shape->members = make(key, length, shape->members);
}

void json_shape_add(struct json_shape *shape, const struct json_path *path)
{
	size_t length;
	const char *key;
	if (!json_path_is_keys(path))
		return;
	for (size_t i = 0; (key = json_path_key(path, i, &length)) && !shape->whole; i++)
		shape = member_of(shape, key, length);
	free_members(shape);
	shape->whole = true;
}

const struct json_shape *json_shape_member(const struct json_shape *shape, struct json_slice key)
{
	for (const struct json_shape *member = shape->members; member; member = member->next)
		if (lex_string_is(key, member->key, member->length))
			return member;
	return NULL;
}

bool json_shape_is_whole(const struct json_shape *shape)
{
	return shape->whole;
}
