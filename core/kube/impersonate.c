#include "kube/impersonate.h"

#include <string.h>

#include "base/alloc.h"
#include "kube/secret.h"

struct lines {
	char **texts; /* ended by NULL */
	size_t count;
};

static void add_line(struct lines *lines, char *line)
{
	lines->texts = alloc_resize(lines->texts, (lines->count + 2) * sizeof(*lines->texts));
	lines->texts[lines->count++] = line;
	lines->texts[lines->count] = NULL;
}

/* A line break would be a way to add headers. */
static bool is_header_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7F)
			return false;
	return true;
}

static int add(struct lines *lines, const struct kubeconfig_entry *entry, const char *key, const char *header,
	       const char *value, struct err *err)
{
	if (!is_header_text(value))
		return kubeconfig_refuse(entry, key, "holds a control character", err);
	add_line(lines, alloc_format("%s: %s", header, value));
	return 0;
}

static int add_text(struct lines *lines, const struct kubeconfig_entry *entry, const char *key, const char *header,
		    struct err *err)
{
	char *value;
	if (kubeconfig_text(entry, key, &value, err))
		return -1;
	int result = value ? add(lines, entry, key, header, value, err) : 0;
	alloc_free(value);
	return result;
}

static int add_texts(struct lines *lines, const struct kubeconfig_entry *entry, const char *key, const char *header,
		     struct err *err)
{
	char **values;
	int result = kubeconfig_texts(entry, key, &values, err);
	if (result)
		return result;
	for (char **value = values; !result && *value; value++)
		result = add(lines, entry, key, header, *value, err);
	secret_texts_free(values);
	return result;
}

/* The name of an extra becomes part of a header's name: what may not stand there is percent-encoded. */
static char *extra_header(const char *name)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$&'*+-.^_`|~";
	struct buf header;
	buf_init(&header, 0);
	buf_append_text(&header, "Impersonate-Extra-");
	for (; *name; name++)
		buf_append_format(&header, strchr(plain, *name) ? "%c" : "%%%02X", (unsigned char)*name);
	return buf_take(&header);
}

static int add_extras(struct lines *lines, const struct kubeconfig_entry *user, struct err *err)
{
	struct kubeconfig_entry extras;
	int result = kubeconfig_part(user, "as-user-extra", &extras, err);
	if (result <= 0)
		return result;
	result = 0;
	for (struct json_iter iter = json_iterate(extras.value); !result && json_next(&iter);) {
		char *name = json_string_copy(iter.key), *header = extra_header(name);
		result = add_texts(lines, &extras, name, header, err);
		alloc_free(name);
		alloc_free(header);
	}
	return result;
}

int impersonate_read(const struct kubeconfig_entry *user, char ***lines, struct err *err)
{
	struct lines made = {0};
	*lines = NULL;
	int result = add_text(&made, user, "as", "Impersonate-User", err);
	bool named = made.count > 0;
	if (!result)
		result = add_text(&made, user, "as-uid", "Impersonate-Uid", err) ||
			 add_texts(&made, user, "as-groups", "Impersonate-Group", err) || add_extras(&made, user, err);
	if (!result && made.count && !named)
		result = kubeconfig_refuse(
		    user, "as", "is missing, but as-uid, as-groups or as-user-extra are there; name the user too", err);
	if (result) {
		secret_texts_free(made.texts);
		return -1;
	}
	*lines = made.texts;
	return 0;
}
