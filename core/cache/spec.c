#include "cache/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kube/resource.h"
#include "kube/selector.h"

const char *const informer_usual_drop[] = {"metadata.managedFields"};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A sorted array (owned) of the texts (borrowed), each once. */
static const char **sort_texts(const char *const *texts, size_t *count)
{
	size_t kept = 0;
	const char **sorted = alloc_zero((*count + 1) * sizeof(*sorted));
	for (size_t i = 0; i < *count; i++)
		sorted[i] = texts[i];
	qsort(sorted, *count, sizeof(*sorted), compare_texts);
	for (size_t i = 0; i < *count; i++)
		if (!kept || strcmp(sorted[kept - 1], sorted[i]) != 0)
			sorted[kept++] = sorted[i];
	*count = kept;
	return sorted;
}

static void append_member(struct buf *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_append_format(out, "%s\"%s\":", out->length && out->data[out->length - 1] != '{' ? "," : "", name);
	buf_append_json_string(out, value, strlen(value));
}

static void append_members(struct buf *out, const char *name, const char *const *texts, size_t count)
{
	const char **sorted = sort_texts(texts, &count);
	buf_append_format(out, ",\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_char(out, ',');
		buf_append_json_string(out, sorted[i], strlen(sorted[i]));
	}
	buf_append_char(out, ']');
	alloc_free(sorted);
}

/* JSON, since no text in it can then be taken for another. */
void informer_spec_key(const struct informer_spec *spec, struct buf *out)
{
	buf_append_char(out, '{');
	append_member(out, "apiVersion", spec->api_version);
	append_member(out, spec->kind ? "kind" : "resource", spec->kind ? spec->kind : spec->resource);
	append_member(out, "labels", spec->label_selector);
	append_member(out, "fields", spec->field_selector);
	append_members(out, "namespaces", spec->namespaces, spec->namespace_count);
	if (spec->keep)
		append_members(out, "keep", spec->keep, spec->keep_count);
	else
		append_members(out, "drop", spec->drop_given ? spec->drop : informer_usual_drop,
			       spec->drop_given ? spec->drop_count : 1);
	if (spec->transform)
		buf_append_format(out, ",\"transform\":\"%p\"", transform_identity(spec->transform));
	buf_append_text(out, spec->metadata_only ? ",\"metadata\":true}" : "}");
}

static int check_label_selector(const char *text, struct err *err)
{
	struct selector *selector = text ? selector_new(text, err) : NULL;
	selector_free(selector);
	return text && !selector ? -1 : 0;
}

/* Whether each term, up to a comma, compares; an empty one counts for nothing. A backslash takes the next character's
 * meaning. */
static bool compares(const char *text)
{
	enum { EMPTY, LACKING, COMPARED } term = EMPTY;
	for (const char *at = text; *at; at++) {
		if (*at == ',') {
			if (term == LACKING)
				return false;
			term = EMPTY;
		} else if (*at == '=') {
			term = COMPARED;
		} else if (term == EMPTY) {
			term = LACKING;
		}
		if (*at == '\\' && at[1])
			at++;
	}
	return term != LACKING;
}

/* The server alone knows which fields there are, and how they compare. */
static int check_field_selector(const char *text, struct err *err)
{
	for (const char *at = text ? text : ""; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7F)
			return err_set(err, "BadRequest", "a control character in the field selector");
	if (text && !compares(text))
		return err_set(err, "BadRequest",
			       "the field selector \"%.100s\" compares nothing: write FIELD=VALUE or FIELD!=VALUE",
			       text);
	return 0;
}

static int check_name(const char *what, const char *name, struct err *err)
{
	size_t length = strlen(name);
	if (!length || length > 253 || strpbrk(name, "/%") || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(err, "BadRequest", "\"%.100s\" is no %s", name, what);
	return 0;
}

static int check(const struct informer_spec *from, struct err *err)
{
	char group[254], version[64];
	if (!from->api_version)
		return err_set(err, "BadRequest", "an informer needs an apiVersion");
	if (resource_split(from->api_version, group, version, err))
		return -1;
	if (!from->kind && !from->resource)
		return err_set(err, "BadRequest", "an informer needs a kind or a resource");
	if (check_name(from->kind ? "kind" : "resource", from->kind ? from->kind : from->resource, err))
		return -1;
	for (size_t i = 0; i < from->namespace_count; i++)
		if (check_name("namespace", from->namespaces[i], err))
			return -1;
	if (from->page_size < 0)
		return err_set(err, "BadRequest", "a page_size of %d is no size", from->page_size);
	if (check_label_selector(from->label_selector, err))
		return -1;
	return check_field_selector(from->field_selector, err);
}

static void copy_namespaces(struct spec *spec, const struct informer_spec *from)
{
	struct buf text;
	buf_init(&text, 0);
	spec->namespace_count = from->namespace_count;
	const char **sorted = sort_texts(from->namespaces, &spec->namespace_count);
	spec->namespaces = alloc_zero((spec->namespace_count + 1) * sizeof(*spec->namespaces));
	for (size_t i = 0; i < spec->namespace_count; i++) {
		spec->namespaces[i] = alloc_string(sorted[i]);
		buf_append_format(&text, "%s%s", i ? "," : "", sorted[i]);
	}
	alloc_free(sorted);
	spec->namespace_text = alloc_string(buf_text(&text));
	buf_fini(&text);
}

static void append_paths(struct buf *label, const char *what, const char *const *paths, size_t count)
{
	const char **sorted = sort_texts(paths, &count);
	buf_append_format(label, " (%s%s", what, count ? "" : " nothing");
	for (size_t i = 0; i < count; i++)
		buf_append_format(label, "%s%s", i ? "," : " ", sorted[i]);
	buf_append_char(label, ')');
	alloc_free(sorted);
}

static bool drops_as_usual(const struct informer_spec *spec)
{
	return !spec->drop_given || (spec->drop_count == 1 && !strcmp(spec->drop[0], informer_usual_drop[0]));
}

static void append_projection(struct buf *label, const struct informer_spec *from)
{
	if (from->metadata_only)
		buf_append_text(label, " (metadata)");
	if (from->keep)
		append_paths(label, "keep", from->keep, from->keep_count);
	else if (!drops_as_usual(from))
		append_paths(label, "drop", from->drop, from->drop_count);
	if (from->transform)
		buf_append_text(label, " (transformed)");
}

static char *make_label(const struct spec *spec, const struct informer_spec *from)
{
	struct buf label;
	buf_init(&label, 0);
	buf_append_format(&label, "%s/%s", spec->api_version, spec->kind ? spec->kind : spec->resource);
	if (*spec->namespace_text)
		buf_append_format(&label, " %s", spec->namespace_text);
	if (spec->label_selector)
		buf_append_format(&label, " %s", spec->label_selector);
	if (spec->field_selector)
		buf_append_format(&label, " %s", spec->field_selector);
	append_projection(&label, from);
	return buf_take(&label);
}

static char *make_scope(const struct informer_spec *from)
{
	struct informer_spec nameless = *from;
	struct buf key;
	nameless.kind = nameless.resource = NULL;
	buf_init(&key, 0);
	informer_spec_key(&nameless, &key);
	return buf_take(&key);
}

static char *copy_selector(const char *selector)
{
	return selector && *selector ? alloc_string(selector) : NULL;
}

int spec_init(struct spec *spec, const struct informer_spec *from, struct err *err)
{
	*spec = (struct spec){0};
	if (check(from, err))
		return -1;
	spec->api_version = alloc_string(from->api_version);
	spec->kind = alloc_string(from->kind);
	spec->resource = from->kind ? NULL : alloc_string(from->resource);
	spec->label_selector = copy_selector(from->label_selector);
	spec->field_selector = copy_selector(from->field_selector);
	spec->page_size = from->page_size;
	spec->raw = from->raw;
	copy_namespaces(spec, from);
	spec->label = make_label(spec, from);
	spec->scope = make_scope(from);
	return 0;
}

void spec_fini(struct spec *spec)
{
	for (size_t i = 0; i < spec->namespace_count; i++)
		alloc_free(spec->namespaces[i]);
	alloc_free(spec->namespaces);
	alloc_free(spec->namespace_text);
	alloc_free(spec->api_version);
	alloc_free(spec->kind);
	alloc_free(spec->resource);
	alloc_free(spec->label_selector);
	alloc_free(spec->field_selector);
	alloc_free(spec->label);
	alloc_free(spec->scope);
	*spec = (struct spec){0};
}
