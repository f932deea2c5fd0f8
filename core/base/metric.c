#include "base/metric_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"

ALLOC_TYPE(registry_type, "metric registry");
ALLOC_TYPE(family_type, "metric family");
ALLOC_TYPE(series_type, "metric series");

#define LONGEST_NAME ((size_t)200)
#define LONGEST_TEXT ((size_t)512)

const char *const metric_type_names[] = {"counter", "gauge", "histogram"};
static const char *const histogram_suffixes[] = {"_bucket", "_count", "_sum"};
#define SUFFIXES (sizeof(histogram_suffixes) / sizeof(*histogram_suffixes))

/* --- sorted arrays --- */

/* Where name is, or would be; *found tells which. text gives an element's name. */
static size_t find_place(void *const *array, size_t count, const char *(*text)(const void *), const char *name,
			 bool *found)
{
	size_t low = 0, high = count;
	*found = false;
	while (low < high && !*found) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(text(array[middle]), name);
		*found = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

/* The array, which may have moved. */
static void *insert(void *array, size_t *count, size_t *capacity, size_t place, void *element)
{
	if (*count == *capacity) {
		*capacity = *capacity ? *capacity * 2 : 4;
		array = alloc_resize(array, *capacity * sizeof(void *));
	}
	void **elements = array;
	memmove(elements + place + 1, elements + place, (*count - place) * sizeof(void *));
	elements[place] = element;
	++*count;
	return array;
}

static const char *family_name(const void *family)
{
	return ((const struct metric_family *)family)->name;
}

static const char *series_labels(const void *series)
{
	return ((const struct metric_series *)series)->labels;
}

/* --- text as it stands on the page --- */

/* How many of the next bytes, of left at most, stand for themselves on the page. */
static size_t plain_length(const char *text, size_t left)
{
	size_t length = 0;
	while (length < left && !(text[length] & 0x80) && text[length] != '\n' && text[length] != '\\' &&
	       text[length] != '"')
		length++;
	return length;
}

/* One character. Returns how many bytes of text it was; 0 when that is more than room. */
static size_t append_character(struct buf *out, const char *text, size_t left, size_t room, bool quoted)
{
	size_t length = utf8_sequence((const unsigned char *)text, left);
	if (length > room)
		return 0;
	if (!length)
		buf_append_text(out, "\xEF\xBF\xBD");
	else if (*text == '\n')
		buf_append_text(out, "\\n");
	else if (*text == '\\' || (quoted && *text == '"'))
		buf_append_format(out, "\\%c", *text);
	else
		buf_append(out, text, length);
	return length ? length : 1;
}

static void append_text(struct buf *out, const char *text, bool quoted)
{
	size_t left = strlen(text), room = LONGEST_TEXT, taken;
	for (; left && room; text += taken, left -= taken, room -= taken) {
		taken = plain_length(text, left < room ? left : room);
		if (taken)
			buf_append(out, text, taken);
		else if (!(taken = append_character(out, text, left, room, quoted)))
			return;
	}
}

/* --- the registry --- */

struct metric_registry *metric_registry_new(void)
{
	struct metric_registry *registry = alloc_object(&registry_type, sizeof(*registry));
	list_init(&registry->collectors);
	buf_init(&registry->scratch, 0);
	return registry;
}

static void free_series(struct metric_series *series)
{
	if (!series)
		return;
	alloc_free(series->labels);
	alloc_object_free(&series_type, series);
}

static void free_family(struct metric_family *family)
{
	for (size_t i = 0; i < family->count; i++)
		free_series(family->series[i]);
	free_series(family->lost);
	for (size_t i = 0; i < family->label_count; i++)
		alloc_free(family->labels[i]);
	alloc_free(family->series);
	for (size_t i = 0; i < family->bound_count; i++)
		alloc_free(family->bound_texts[i]);
	alloc_free(family->bound_texts);
	alloc_free(family->bounds);
	alloc_free(family->name);
	alloc_free(family->help);
	alloc_object_free(&family_type, family);
}

void metric_registry_free(struct metric_registry *registry)
{
	for (size_t i = 0; i < registry->count; i++)
		free_family(registry->families[i]);
	alloc_free(registry->families);
	buf_fini(&registry->scratch);
	alloc_object_free(&registry_type, registry);
}

void metric_collector_add(struct metric_registry *registry, struct metric_collector *collector)
{
	list_add_tail(&registry->collectors, &collector->node);
}

void metric_collector_remove(struct metric_collector *collector)
{
	list_remove(&collector->node);
}

/* --- families --- */

static bool is_name(const char *name, bool colons)
{
	if (isdigit((unsigned char)*name) || !*name || strlen(name) > LONGEST_NAME)
		return false;
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && !(colons && *at == ':'))
			return false;
	return true;
}

static int check_labels(const struct metric_definition *definition, struct err *err)
{
	for (size_t i = 0; definition->labels[i]; i++) {
		const char *label = definition->labels[i];
		if (!is_name(label, false) || !strncmp(label, "__", 2))
			return err_set(err, "",
				       "\"%.100s\" is no name of a label: letters, digits and _, and no two _ "
				       "at its start",
				       label);
		if (definition->type == METRIC_HISTOGRAM && !strcmp(label, "le"))
			return err_set(err, "", "the label le of a histogram is its buckets'");
		for (size_t before = 0; before < i; before++)
			if (!strcmp(label, definition->labels[before]))
				return err_set(err, "", "the label %s is there twice", label);
	}
	return 0;
}

static int check_definition(const struct metric_definition *definition, struct err *err)
{
	if (!is_name(definition->name, true))
		return err_set(err, "", "\"%.100s\" is no name of a metric: letters, digits, _ and :, at most %zu",
			       definition->name, LONGEST_NAME);
	if (check_labels(definition, err))
		return -1;
	for (size_t i = 0; i < definition->bound_count; i++)
		if (!isfinite(definition->bounds[i]) || (i && definition->bounds[i] <= definition->bounds[i - 1]))
			return err_set(err, "", "the buckets of %s must rise", definition->name);
	return 0;
}

static struct metric_family *find_family(const struct metric_registry *registry, const char *name)
{
	bool found;
	size_t place = find_place((void *const *)registry->families, registry->count, family_name, name, &found);
	return found ? registry->families[place] : NULL;
}

/* A histogram's samples have names of their own, which no other family may have. */
static bool clashes(const struct metric_registry *registry, const struct metric_definition *definition)
{
	char name[LONGEST_NAME + 16];
	size_t length = strlen(definition->name);
	for (size_t i = 0; i < SUFFIXES; i++) {
		const char *suffix = histogram_suffixes[i];
		size_t tail = strlen(suffix);
		snprintf(name, sizeof(name), "%s%s", definition->name, suffix);
		if (definition->type == METRIC_HISTOGRAM && find_family(registry, name))
			return true;
		if (length <= tail || strcmp(definition->name + length - tail, suffix) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - tail), definition->name);
		const struct metric_family *owner = find_family(registry, name);
		if (owner && owner->type == METRIC_HISTOGRAM)
			return true;
	}
	return false;
}

static bool is_same(const struct metric_family *family, const struct metric_definition *definition)
{
	if (family->type != definition->type || family->bound_count != definition->bound_count)
		return false;
	for (size_t i = 0; i < family->bound_count; i++)
		if (family->bounds[i] != definition->bounds[i])
			return false;
	for (size_t i = 0; i < family->label_count; i++)
		if (!definition->labels[i] || strcmp(family->labels[i], definition->labels[i]) != 0)
			return false;
	return !definition->labels[family->label_count];
}

static char *help_text(const char *help)
{
	struct buf text;
	buf_init(&text, 0);
	append_text(&text, help, false);
	buf_append_char(&text, '\n');
	return buf_take(&text);
}

static void copy_bounds(struct metric_family *family, const struct metric_definition *definition)
{
	family->bound_count = definition->bound_count;
	if (!family->bound_count)
		return;
	family->bounds = alloc_copy(definition->bounds, family->bound_count * sizeof(double));
	family->bound_texts = alloc_zero(family->bound_count * sizeof(char *));
	for (size_t i = 0; i < family->bound_count; i++) {
		struct buf text;
		buf_init(&text, 0);
		metric_append_number(&text, family->bounds[i]);
		family->bound_texts[i] = buf_take(&text);
	}
}

static struct metric_family *make_family(struct metric_registry *registry, const struct metric_definition *definition)
{
	struct metric_family *family = alloc_object(&family_type, sizeof(*family));
	family->registry = registry;
	family->type = definition->type;
	family->name = alloc_string(definition->name);
	family->help = help_text(definition->help);
	family->limit = definition->limit;
	copy_bounds(family, definition);
	for (; definition->labels[family->label_count]; family->label_count++)
		family->labels[family->label_count] = alloc_string(definition->labels[family->label_count]);
	return family;
}

struct metric_family *metric_family(struct metric_registry *registry, const struct metric_definition *definition,
				    struct err *err)
{
	if (check_definition(definition, err))
		return NULL;
	bool found;
	size_t place =
	    find_place((void *const *)registry->families, registry->count, family_name, definition->name, &found);
	if (found && is_same(registry->families[place], definition))
		return registry->families[place];
	if (found || clashes(registry, definition)) {
		err_set(err, "", "the metric %s is there already, as a %s or with other labels or buckets",
			definition->name,
			found ? metric_type_names[registry->families[place]->type] : "histogram's part");
		return NULL;
	}
	struct metric_family *family = make_family(registry, definition);
	registry->families = insert(registry->families, &registry->count, &registry->capacity, place, family);
	return family;
}

void metric_family_ref(struct metric_family *family)
{
	family->users++;
}

void metric_family_unref(struct metric_family *family)
{
	struct metric_registry *registry = family->registry;
	if (--family->users)
		return;
	bool found;
	size_t place =
	    find_place((void *const *)registry->families, registry->count, family_name, family->name, &found);
	registry->count--;
	memmove(registry->families + place, registry->families + place + 1,
		(registry->count - place) * sizeof(*registry->families));
	free_family(family);
}

void metric_define(struct metric_registry *registry, const struct metric_definition *table, size_t count,
		   struct metric_family **out)
{
	for (size_t i = 0; i < count; i++) {
		struct err err;
		out[i] = metric_family(registry, &table[i], &err);
		if (out[i])
			continue;
		log_error(NULL, "%s", err.message);
		abort();
	}
}

/* --- series --- */

static const char *label_text(struct metric_family *family, const char *const *values)
{
	struct buf *text = &family->registry->scratch;
	buf_reset(text);
	for (size_t i = 0; i < family->label_count; i++) {
		if (i)
			buf_append_char(text, ',');
		buf_append_text(text, family->labels[i]);
		buf_append_text(text, "=\"");
		append_text(text, values[i], true);
		buf_append_char(text, '"');
	}
	return buf_text(text);
}

static struct metric_series *make_series(struct metric_family *family, const char *labels)
{
	size_t counts = family->type == METRIC_HISTOGRAM ? family->bound_count + 1 : 0;
	struct metric_series *series = alloc_object(&series_type, sizeof(*series) + counts * sizeof(uint64_t));
	series->family = family;
	series->labels = alloc_string(labels);
	return series;
}

static struct metric_series *lost_series(struct metric_family *family)
{
	if (family->lost)
		return family->lost;
	log_warn(NULL, "the metric %s has %zu series, which is its limit: others are not counted", family->name,
		 family->limit);
	return family->lost = make_series(family, "");
}

static struct metric_series *series_of(struct metric_family *family, const char *const *values)
{
	bool found;
	const char *labels = label_text(family, values);
	size_t place = find_place((void *const *)family->series, family->count, series_labels, labels, &found);
	if (found)
		return family->series[place];
	if (family->limit && family->count >= family->limit)
		return lost_series(family);
	struct metric_series *series = make_series(family, labels);
	family->series = insert(family->series, &family->count, &family->capacity, place, series);
	return series;
}

struct metric_series *metric_hold(struct metric_family *family, const char *const *values)
{
	struct metric_series *series = series_of(family, values);
	series->holders++;
	return series;
}

struct metric_series *metric_keep(struct metric_family *family, const char *const *values)
{
	struct metric_series *series = series_of(family, values);
	series->kept = true;
	return series;
}

void metric_release(struct metric_series *series)
{
	struct metric_family *family = series->family;
	if (--series->holders || series->kept || series == family->lost)
		return;
	bool found;
	size_t place = find_place((void *const *)family->series, family->count, series_labels, series->labels, &found);
	family->count--;
	memmove(family->series + place, family->series + place + 1, (family->count - place) * sizeof(*family->series));
	free_series(series);
}

void metric_add(struct metric_series *series, double amount)
{
	series->value += amount;
}

void metric_set(struct metric_series *series, double value)
{
	series->value = value;
}

void metric_observe(struct metric_series *series, double value)
{
	const struct metric_family *family = series->family;
	size_t place = 0;
	while (place < family->bound_count && !(value <= family->bounds[place]))
		place++;
	series->counts[place]++;
	series->value += value;
}

/* --- what is collected --- */

void metric_collect(struct metric_family *family, const char *const *values, double value)
{
	struct metric_series *series = series_of(family, values);
	bool first = series->page != family->registry->page;
	series->page = family->registry->page;
	series->value = first ? value : series->value + value;
}

static void sweep_family(struct metric_family *family)
{
	size_t left = 0;
	for (size_t i = 0; i < family->count; i++) {
		struct metric_series *series = family->series[i];
		if (series->holders || series->kept || series->page == family->registry->page)
			family->series[left++] = series;
		else
			free_series(series);
	}
	family->count = left;
}

void metric_sweep(struct metric_registry *registry)
{
	for (size_t i = 0; i < registry->count; i++)
		sweep_family(registry->families[i]);
}
