/* bind_metric: k8s.metric: a script's own counters, gauges and histograms, on the host's page of metrics.
 *
 * Each has the label `script` before its own, so that two scripts may have one of the same name: they are one family
 * then, and must agree on its type, labels and buckets. */
#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/metric.h"
#include "base/strmap.h"
#include "script/bind.h"
#include "script/host_private.h"

ALLOC_TYPE(meter_type, "script metric");

/* C memory that no limit of the state counts. */
#define MOST_METRICS 100
#define MOST_SERIES 1000 /* of one metric, all scripts together */
#define MOST_BUCKETS 50
#define LONGEST_VALUE 512 /* the registry's: what differs behind it is one series */
#define OWN_LABELS (METRIC_LABELS - 1)

static const char *const type_names[] = {"perilune.counter", "perilune.gauge", "perilune.histogram"};
static const char *const shown_names[] = {"counter", "gauge", "histogram"};

/* One metric of a script. It lives as long as that, as its numbers do, whatever becomes of the script's handle. */
struct meter {
	struct list node; /* in script->metrics */
	struct script *script;
	struct metric_family *family; /* counted */
	enum metric_type type;
	char *name;
	char *labels[OWN_LABELS];
	size_t label_count;
	struct strmap series; /* by its labels' values, each ended by a NUL; held */
};

/* --- definition --- */

static void check_name(lua_State *L, const char *name)
{
	static const char *const taken[] = {"perilune_",           "process_",     "workqueue_",
					    "controller_runtime_", "rest_client_", "leader_election_"};
	if (!name)
		bind_misuse(L, "k8s.metric: name is missing");
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (strncmp(name, taken[i], strlen(taken[i])) == 0)
			bind_misuse(L, "k8s.metric: names that begin with %s are the program's own", taken[i]);
}

/* The numbers stay on the stack. */
static void read_buckets(lua_State *L, struct metric_definition *definition)
{
	static const double usual[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
	lua_pushliteral(L, "buckets");
	lua_rawget(L, 1);
	definition->bounds = usual;
	definition->bound_count = sizeof(usual) / sizeof(*usual);
	if (lua_isnil(L, -1))
		return;
	size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
	if (!count || count > MOST_BUCKETS)
		bind_misuse(L, "k8s.metric.histogram: buckets must be a list of 1 to %d numbers that rise",
			    MOST_BUCKETS);
	double *bounds = lua_newuserdata(L, count * sizeof(*bounds));
	for (size_t i = 0; i < count; i++) {
		lua_rawgeti(L, -2, (int)i + 1);
		if (!lua_isnumber(L, -1))
			bind_misuse(L, "k8s.metric.histogram: a bucket must be a number, not a %s",
				    luaL_typename(L, -1));
		bounds[i] = lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	definition->bounds = bounds;
	definition->bound_count = count;
}

/* All texts are borrowed from the table at 1 and from what is left on the stack. */
static void read_definition(lua_State *L, struct metric_definition *definition)
{
	size_t count;
	definition->name = bind_string_option(L, 1, "name");
	definition->help = bind_string_option(L, 1, "help");
	definition->limit = MOST_SERIES;
	check_name(L, definition->name);
	if (!definition->help)
		bind_misuse(L, "k8s.metric: help is missing: a line for people");
	const char *const *labels = bind_strings_option(L, 1, "labels", &count);
	if (count > OWN_LABELS)
		bind_misuse(L, "k8s.metric: %s has more than %d labels", definition->name, OWN_LABELS);
	definition->labels[0] = "script";
	for (size_t i = 0; i < count; i++)
		definition->labels[i + 1] = labels[i];
	if (definition->type == METRIC_HISTOGRAM)
		read_buckets(L, definition);
}

/* --- series --- */

/* Appends the value of a label to key, as text. The labels' table is at index. */
static void append_value(lua_State *L, const struct meter *meter, int index, const char *label, struct buf *key)
{
	lua_pushstring(L, label);
	lua_rawget(L, index);
	if (lua_isboolean(L, -1)) {
		buf_append_text(key, lua_toboolean(L, -1) ? "true" : "false");
	} else if (lua_isnumber(L, -1) || lua_isstring(L, -1)) {
		lua_tostring(L, -1); /* of its copy here */
		const char *text = bind_text(L, -1, label);
		buf_append(key, text, strnlen(text, LONGEST_VALUE));
	} else {
		bind_misuse(L, "%s: the label %s must be a text, not %s", meter->name, label,
			    lua_isnil(L, -1) ? "missing" : luaL_typename(L, -1));
	}
	buf_append_char(key, '\0');
	lua_pop(L, 1);
}

static void check_labels(lua_State *L, const struct meter *meter, int index)
{
	if (!lua_istable(L, index)) {
		if (meter->label_count || !lua_isnoneornil(L, index))
			bind_misuse(L, "%s takes its labels as a table { name = value }", meter->name);
		return;
	}
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
		size_t i = 0;
		while (i < meter->label_count && strcmp(meter->labels[i], name) != 0)
			i++;
		if (i == meter->label_count)
			bind_misuse(L, "%s has no label '%s'", meter->name, name);
	}
}

static struct metric_series *hold(const struct meter *meter, const char *key)
{
	const char *values[METRIC_LABELS] = {meter->script->name};
	for (size_t i = 0; i < meter->label_count; i++, key += strlen(key) + 1)
		values[i + 1] = key;
	return metric_hold(meter->family, values);
}

/* Beyond the limit what is counted is lost, which the registry tells. */
static struct metric_series *series_at(lua_State *L, struct meter *meter, int index)
{
	struct buf *key = &state_of(L)->scratch;
	check_labels(L, meter, index);
	buf_reset(key);
	for (size_t i = 0; i < meter->label_count; i++)
		append_value(L, meter, index, meter->labels[i], key);
	struct metric_series *series = strmap_get(&meter->series, buf_text(key), key->length);
	if (series)
		return series;
	series = hold(meter, buf_text(key));
	if (meter->series.count < MOST_SERIES)
		strmap_put(&meter->series, buf_text(key), key->length, series);
	else
		metric_release(series); /* the one that stands for all that are lost, which stays */
	return series;
}

/* --- methods --- */

static struct meter *self(lua_State *L, enum metric_type type)
{
	return *(struct meter **)bind_self(L, type_names[type], shown_names[type]);
}

static double number_at(lua_State *L, const struct meter *meter, int index)
{
	double number = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : NAN;
	if (!isfinite(number))
		bind_misuse(L, "%s takes a number, not %s", meter->name,
			    lua_type(L, index) == LUA_TNUMBER ? lua_tostring(L, index) : luaL_typename(L, index));
	return number;
}

/* inc(n?, labels?), or inc(labels) */
static int increase(lua_State *L, enum metric_type type)
{
	struct meter *meter = self(L, type);
	int labels = lua_istable(L, 2) ? 2 : 3;
	double amount = labels == 2 || lua_isnoneornil(L, 2) ? 1 : number_at(L, meter, 2);
	if (type == METRIC_COUNTER && amount < 0)
		return bind_misuse(L, "%s is a counter: it never falls", meter->name);
	metric_add(series_at(L, meter, labels), amount);
	return 0;
}

static int l_counter_inc(lua_State *L)
{
	return increase(L, METRIC_COUNTER);
}

static int l_gauge_inc(lua_State *L)
{
	return increase(L, METRIC_GAUGE);
}

static int l_set(lua_State *L)
{
	struct meter *meter = self(L, METRIC_GAUGE);
	double value = number_at(L, meter, 2);
	metric_set(series_at(L, meter, 3), value);
	return 0;
}

static int l_observe(lua_State *L)
{
	struct meter *meter = self(L, METRIC_HISTOGRAM);
	double value = number_at(L, meter, 2);
	metric_observe(series_at(L, meter, 3), value);
	return 0;
}

/* --- making and freeing --- */

static void free_meter(struct meter *meter)
{
	size_t cursor = 0, length;
	const char *key;
	void *series;
	while (strmap_next(&meter->series, &cursor, &key, &length, &series))
		metric_release(series);
	strmap_fini(&meter->series);
	metric_family_unref(meter->family);
	for (size_t i = 0; i < meter->label_count; i++)
		alloc_free(meter->labels[i]);
	alloc_free(meter->name);
	list_remove(&meter->node);
	alloc_object_free(&meter_type, meter);
}

void bind_metric_end_all(struct script *script)
{
	while (!list_is_empty(&script->metrics))
		free_meter(LIST_ENTRY(script->metrics.next, struct meter, node));
}

static struct meter *find(const struct script *script, const struct metric_family *family, size_t *count)
{
	*count = 0;
	LIST_EACH (&script->metrics, node) {
		struct meter *meter = LIST_ENTRY(node, struct meter, node);
		if (meter->family == family)
			return meter;
		++*count;
	}
	return NULL;
}

/* One without labels is on the page from its beginning. */
static struct meter *make(struct script *script, struct metric_family *family,
			  const struct metric_definition *definition)
{
	struct meter *meter = alloc_object(&meter_type, sizeof(*meter));
	meter->script = script;
	meter->family = family;
	meter->type = definition->type;
	meter->name = alloc_string(definition->name);
	metric_family_ref(family);
	for (; definition->labels[meter->label_count + 1]; meter->label_count++)
		meter->labels[meter->label_count] = alloc_string(definition->labels[meter->label_count + 1]);
	strmap_init(&meter->series);
	list_init(&meter->node);
	list_add_tail(&script->metrics, &meter->node);
	if (!meter->label_count)
		strmap_put(&meter->series, "", 0, hold(meter, ""));
	return meter;
}

/* counter, gauge or histogram{ name =, help =, labels = { names }, buckets = { numbers } }: its handle. The same asked
 * for twice is one. */
static int define(lua_State *L, enum metric_type type, const char *what, const char *const *known)
{
	struct script *script = script_of(L);
	struct metric_definition definition = {.type = type};
	struct err err;
	size_t count;
	lua_settop(L, 1);
	bind_check_options(L, 1, what, known);
	read_definition(L, &definition);
	struct meter **handle = lua_newuserdata(L, sizeof(struct meter *));
	luaL_getmetatable(L, type_names[type]);
	lua_setmetatable(L, -2);
	find(script, NULL, &count);
	if (count >= MOST_METRICS)
		return bind_misuse(L, "a script can't have more than %d metrics", MOST_METRICS);
	struct metric_family *family = metric_family(host_metrics(script->host), &definition, &err);
	if (!family)
		return bind_misuse(L, "%s: %s", what, err.message);
	struct meter *meter = find(script, family, &count);
	*handle = meter ? meter : make(script, family, &definition);
	return 1;
}

static int l_counter(lua_State *L)
{
	static const char *const known[] = {"name", "help", "labels", NULL};
	return define(L, METRIC_COUNTER, "k8s.metric.counter", known);
}

static int l_gauge(lua_State *L)
{
	static const char *const known[] = {"name", "help", "labels", NULL};
	return define(L, METRIC_GAUGE, "k8s.metric.gauge", known);
}

static int l_histogram(lua_State *L)
{
	static const char *const known[] = {"name", "help", "labels", "buckets", NULL};
	return define(L, METRIC_HISTOGRAM, "k8s.metric.histogram", known);
}

static const luaL_Reg functions[] = {
    {"counter", l_counter}, {"gauge", l_gauge}, {"histogram", l_histogram}, {NULL, NULL}};
static const luaL_Reg methods[][3] = {[METRIC_COUNTER] = {{"inc", l_counter_inc}, {NULL, NULL}},
				      [METRIC_GAUGE] = {{"inc", l_gauge_inc}, {"set", l_set}, {NULL, NULL}},
				      [METRIC_HISTOGRAM] = {{"observe", l_observe}, {NULL, NULL}}};

void bind_metric_open(lua_State *L)
{
	for (size_t type = 0; type < sizeof(methods) / sizeof(*methods); type++)
		bind_type(L, type_names[type], shown_names[type], methods[type], NULL, NULL);
	lua_newtable(L);
	luaL_register(L, NULL, functions);
	lua_setfield(L, -2, "metric");
}
