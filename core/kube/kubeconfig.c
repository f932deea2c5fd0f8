#include "kube/kubeconfig.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strmap.h"
#include "kube/secret.h"
#include "json/yaml.h"

static const char *const kinds[] = {"context", "cluster", "user"};

static bool is_given(struct json_slice value)
{
	return json_type(value) != JSON_NONE && json_type(value) != JSON_NULL;
}

static struct json_slice list_of(const struct kubeconfig_file *file, const char *kind)
{
	char key[16];
	snprintf(key, sizeof(key), "%ss", kind);
	return json_get(file->root, key);
}

/* One element of clusters, contexts or users: {name: …, cluster: {…}}. names holds the ones before it. */
static int check_element(const char *kind, struct json_slice element, struct strmap *names, struct err *err)
{
	if (json_type(element) != JSON_OBJECT)
		return err_set(err, "", "%ss holds an entry that is no object", kind);
	char *name = json_string_copy(json_get(element, "name"));
	if (!name)
		return err_set(err, "", "%ss holds an entry without a name, or with one that is no text", kind);
	int result = 0;
	struct json_slice value = json_get(element, kind);
	if (is_given(value) && json_type(value) != JSON_OBJECT)
		result = err_set(err, "", "%s \"%s\" is no object", kind, name);
	else if (strmap_put(names, name, strlen(name), names))
		result = err_set(err, "", "there are two of %s \"%s\"", kind, name);
	alloc_free(name);
	return result;
}

static int check_list(const struct kubeconfig_file *file, const char *kind, struct err *err)
{
	struct json_slice list = list_of(file, kind);
	if (!is_given(list))
		return 0;
	if (json_type(list) != JSON_ARRAY)
		return err_set(err, "", "%ss is no list", kind);
	struct strmap names;
	strmap_init(&names);
	int result = 0;
	for (struct json_iter iter = json_iterate(list); !result && json_next(&iter);)
		result = check_element(kind, iter.value, &names, err);
	strmap_fini(&names);
	return result;
}

static int check_file(const struct kubeconfig_file *file, struct err *err)
{
	if (!is_given(file->root))
		return 0;
	if (json_type(file->root) != JSON_OBJECT)
		return err_set(err, "", "this is no kubeconfig: it holds no object");
	struct json_slice kind = json_get(file->root, "kind"), current = json_get(file->root, "current-context");
	if (is_given(kind) && !json_string_equals(kind, "Config") && !json_string_equals(kind, ""))
		return err_set(err, "", "this is no kubeconfig: its kind is %.*s, not Config",
			       (int)(kind.length < 80 ? kind.length : 80), kind.data);
	if (is_given(current) && json_type(current) != JSON_STRING)
		return err_set(err, "", "current-context is no text");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (check_list(file, kinds[i], err))
			return -1;
	return 0;
}

/* The first document counts, as for kubectl. */
static int keep_document(void *data, struct json_slice json, struct err *err)
{
	(void)err;
	struct kubeconfig_file *file = data;
	if (!file->json) {
		file->json = alloc_text(json.data, json.length);
		file->root = (struct json_slice){file->json, json.length};
	}
	return 0;
}

static int read_file(struct kubeconfig *kubeconfig, const char *path, struct err *err)
{
	size_t length;
	char *bytes = secret_read(path, &length, err);
	if (!bytes)
		return errno == ENOENT ? 0 : -1;
	kubeconfig->files = alloc_resize(kubeconfig->files, (kubeconfig->count + 1) * sizeof(*kubeconfig->files));
	struct kubeconfig_file *file = &kubeconfig->files[kubeconfig->count++];
	*file = (struct kubeconfig_file){.path = alloc_string(path)};
	int failed = yaml_to_json(bytes, length, keep_document, file, err) || check_file(file, err);
	explicit_bzero(bytes, length);
	alloc_free(bytes);
	return failed ? err_prefix(err, "%s", path) : 0;
}

static char *join_paths(const struct kubeconfig *kubeconfig)
{
	struct buf out;
	buf_init(&out, 0);
	for (size_t i = 0; i < kubeconfig->count; i++)
		buf_append_format(&out, "%s%s", i ? ":" : "", kubeconfig->files[i].path);
	return buf_take(&out);
}

int kubeconfig_read(struct kubeconfig *kubeconfig, const char *paths, struct err *err)
{
	*kubeconfig = (struct kubeconfig){0};
	while (*paths) {
		size_t length = strcspn(paths, ":");
		char *path = alloc_text(paths, length);
		int result = length ? read_file(kubeconfig, path, err) : 0;
		alloc_free(path);
		if (result)
			return -1;
		paths += length + (paths[length] == ':');
	}
	kubeconfig->source = join_paths(kubeconfig);
	return 0;
}

void kubeconfig_fini(struct kubeconfig *kubeconfig)
{
	for (size_t i = 0; i < kubeconfig->count; i++) {
		alloc_free(kubeconfig->files[i].path);
		secret_free(kubeconfig->files[i].json);
	}
	alloc_free(kubeconfig->files);
	alloc_free(kubeconfig->source);
	*kubeconfig = (struct kubeconfig){0};
}

char *kubeconfig_current(const struct kubeconfig *kubeconfig)
{
	for (size_t i = 0; i < kubeconfig->count; i++) {
		struct json_slice current = json_get(kubeconfig->files[i].root, "current-context");
		if (is_given(current) && !json_string_equals(current, ""))
			return json_string_copy(current);
	}
	return NULL;
}

bool kubeconfig_find(const struct kubeconfig *kubeconfig, const char *kind, const char *name,
		     struct kubeconfig_entry *entry)
{
	for (size_t i = 0; i < kubeconfig->count; i++) {
		struct json_iter iter = json_iterate(list_of(&kubeconfig->files[i], kind));
		while (json_next(&iter)) {
			if (!json_string_equals(json_get(iter.value, "name"), name))
				continue;
			*entry = (struct kubeconfig_entry){&kubeconfig->files[i], kind, name,
							   json_get(iter.value, kind), NULL};
			return true;
		}
	}
	return false;
}

static void append_name(struct strmap *seen, struct json_slice string, struct buf *out)
{
	char *name = json_string_copy(string);
	if (!strmap_put(seen, name, strlen(name), seen))
		buf_append_format(out, "%s%s", out->length ? ", " : "", name);
	alloc_free(name);
}

void kubeconfig_names(const struct kubeconfig *kubeconfig, const char *kind, struct buf *out)
{
	struct strmap seen;
	strmap_init(&seen);
	for (size_t i = 0; i < kubeconfig->count; i++) {
		struct json_iter iter = json_iterate(list_of(&kubeconfig->files[i], kind));
		while (json_next(&iter))
			append_name(&seen, json_get(iter.value, "name"), out);
	}
	strmap_fini(&seen);
}

int kubeconfig_refuse(const struct kubeconfig_entry *entry, const char *key, const char *why, struct err *err)
{
	const char *part = entry->part ? entry->part : "";
	return err_set(err, "", "%s: %s \"%s\": %s%s%s %s", entry->file->path, entry->kind, entry->name, part,
		       *part ? "." : "", key, why);
}

/* The text of a JSON string; NULL with err when it is something else, or holds a NUL. */
static char *take_text(const struct kubeconfig_entry *entry, const char *key, struct json_slice value, struct err *err)
{
	if (json_type(value) != JSON_STRING) {
		kubeconfig_refuse(entry, key, "is no text (a number or a word like \"true\" needs quotes)", err);
		return NULL;
	}
	struct buf text;
	buf_init(&text, 0);
	json_string_append(value, &text);
	bool whole = strlen(buf_text(&text)) == text.length;
	char *taken = buf_take(&text);
	if (whole)
		return taken;
	secret_free(taken);
	kubeconfig_refuse(entry, key, "contains a NUL character", err);
	return NULL;
}

int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err)
{
	*out = NULL;
	struct json_slice value = json_get(entry->value, key);
	if (!is_given(value) || json_string_equals(value, ""))
		return 0;
	*out = take_text(entry, key, value, err);
	return *out ? 0 : -1;
}

static size_t count_elements(struct json_slice list)
{
	size_t count = 0;
	for (struct json_iter iter = json_iterate(list); json_next(&iter);)
		count++;
	return count;
}

int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key, char ***out, struct err *err)
{
	struct json_slice list = json_get(entry->value, key);
	*out = NULL;
	if (is_given(list) && json_type(list) != JSON_ARRAY)
		return kubeconfig_refuse(entry, key, "is no list", err);
	char **texts = alloc_zero((count_elements(list) + 1) * sizeof(*texts)), **next = texts;
	for (struct json_iter iter = json_iterate(list); json_next(&iter);) {
		if ((*next++ = take_text(entry, key, iter.value, err)))
			continue;
		secret_texts_free(texts);
		return -1;
	}
	*out = texts;
	return 0;
}

int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err)
{
	char *given;
	*out = NULL;
	if (kubeconfig_text(entry, key, &given, err))
		return -1;
	const char *folder = entry->file->path, *slash = strrchr(folder, '/');
	if (!given || *given == '/' || !slash) {
		*out = given;
		return 0;
	}
	*out = alloc_format("%.*s/%s", (int)(slash - folder), folder, given);
	alloc_free(given);
	return 0;
}

int kubeconfig_data(const struct kubeconfig_entry *entry, const char *key, char **out, struct err *err)
{
	char *given;
	*out = NULL;
	if (kubeconfig_text(entry, key, &given, err))
		return -1;
	if (!given)
		return 0;
	size_t length;
	char *text = secret_decode(given, &length);
	secret_free(given);
	if (!text)
		return kubeconfig_refuse(entry, key, "is no base64", err);
	if (strlen(text) == length) {
		*out = text;
		return 0;
	}
	explicit_bzero(text, length);
	alloc_free(text);
	return kubeconfig_refuse(entry, key, "holds a NUL byte, so it is no PEM text", err);
}

int kubeconfig_flag(const struct kubeconfig_entry *entry, const char *key, bool *out, struct err *err)
{
	struct json_slice value = json_get(entry->value, key);
	*out = json_bool(value, false);
	if (is_given(value) && json_type(value) != JSON_BOOL)
		return kubeconfig_refuse(entry, key, "is neither true nor false", err);
	return 0;
}

int kubeconfig_part(const struct kubeconfig_entry *entry, const char *key, struct kubeconfig_entry *part,
		    struct err *err)
{
	struct json_slice value = json_get(entry->value, key);
	*part = *entry;
	part->value = value;
	part->part = key;
	if (is_given(value) && json_type(value) != JSON_OBJECT)
		return kubeconfig_refuse(entry, key, "is no object", err);
	return is_given(value);
}
