#include "kube/selector.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"

enum operation { OP_IN, OP_NOT_IN, OP_EXISTS, OP_ABSENT };

struct requirement {
	enum operation op;
	char *key;
	char **values;
	size_t count;
};

struct selector {
	struct requirement *requirements;
	size_t count;
};

struct parser {
	const char *text, *at;
	struct selector *selector;
	struct err *err;
};

static void skip_space(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t')
		parser->at++;
}

static int expected(struct parser *parser, const char *what)
{
	return err_set(parser->err, "BadRequest", "label selector \"%.200s\": expected %s at character %zu",
		       parser->text, what, (size_t)(parser->at - parser->text) + 1);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.' || c == '/';
}

/* The run of word characters here; owned by the caller, "" when there is none. */
static char *take_word(struct parser *parser)
{
	skip_space(parser);
	const char *start = parser->at;
	while (is_word(*parser->at))
		parser->at++;
	char *word = alloc_text(start, (size_t)(parser->at - start));
	skip_space(parser);
	return word;
}

static bool take(struct parser *parser, const char *token)
{
	size_t length = strlen(token);
	if (strncmp(parser->at, token, length) != 0 ||
	    (isalpha((unsigned char)token[0]) && is_word(parser->at[length])))
		return false;
	parser->at += length;
	skip_space(parser);
	return true;
}

static void add_value(struct requirement *requirement, char *value)
{
	requirement->values = alloc_resize(requirement->values, (requirement->count + 1) * sizeof(char *));
	requirement->values[requirement->count++] = value;
}

static int parse_set(struct parser *parser, struct requirement *requirement)
{
	if (!take(parser, "("))
		return expected(parser, "'('");
	do
		add_value(requirement, take_word(parser));
	while (take(parser, ","));
	return take(parser, ")") ? 0 : expected(parser, "')'");
}

static int parse_operator(struct parser *parser, struct requirement *requirement)
{
	if (take(parser, "!=")) {
		requirement->op = OP_NOT_IN;
		add_value(requirement, take_word(parser));
	} else if (take(parser, "==") || take(parser, "=")) {
		requirement->op = OP_IN;
		add_value(requirement, take_word(parser));
	} else if (take(parser, "in")) {
		requirement->op = OP_IN;
		return parse_set(parser, requirement);
	} else if (take(parser, "notin")) {
		requirement->op = OP_NOT_IN;
		return parse_set(parser, requirement);
	} else {
		requirement->op = OP_EXISTS;
	}
	return 0;
}

static int parse_requirement(struct parser *parser)
{
	struct selector *selector = parser->selector;
	selector->requirements =
	    alloc_resize(selector->requirements, (selector->count + 1) * sizeof(*selector->requirements));
	struct requirement *requirement = &selector->requirements[selector->count++];
	memset(requirement, 0, sizeof(*requirement));
	bool absent = take(parser, "!");
	requirement->key = take_word(parser);
	if (!*requirement->key)
		return expected(parser, "a label's name");
	if (absent) {
		requirement->op = OP_ABSENT;
		return 0;
	}
	return parse_operator(parser, requirement);
}

static int parse(struct parser *parser)
{
	skip_space(parser);
	if (*parser->at == '\0')
		return 0;
	do
		if (parse_requirement(parser) < 0)
			return -1;
	while (take(parser, ","));
	return *parser->at == '\0' ? 0 : expected(parser, "',' or the end");
}

struct selector *selector_new(const char *text, struct err *err)
{
	struct selector *selector = alloc_zero(sizeof(*selector));
	struct parser parser = {text, text, selector, err};
	if (parse(&parser) == 0)
		return selector;
	selector_free(selector);
	return NULL;
}

void selector_free(struct selector *selector)
{
	if (!selector)
		return;
	for (size_t i = 0; i < selector->count; i++) {
		struct requirement *requirement = &selector->requirements[i];
		for (size_t j = 0; j < requirement->count; j++)
			alloc_free(requirement->values[j]);
		alloc_free(requirement->values);
		alloc_free(requirement->key);
	}
	alloc_free(selector->requirements);
	alloc_free(selector);
}

static bool holds(const struct requirement *requirement, struct json_slice labels)
{
	struct json_slice value = json_get(labels, requirement->key);
	bool present = json_type(value) == JSON_STRING;
	bool listed = false;
	for (size_t i = 0; i < requirement->count && present && !listed; i++)
		listed = json_string_equals(value, requirement->values[i]);
	switch (requirement->op) {
	case OP_IN:
		return listed;
	case OP_NOT_IN:
		return !listed;
	case OP_EXISTS:
		return present;
	case OP_ABSENT:
		return !present;
	}
	return false;
}

bool selector_matches(const struct selector *selector, struct json_slice labels)
{
	for (size_t i = 0; i < selector->count; i++)
		if (!holds(&selector->requirements[i], labels))
			return false;
	return true;
}
