/* Head: a label selector, and behind a semicolon a field selector. Body: labels. A selector that is taken matches as a
 * plain reading of its text does, an informer takes the same ones, and both come out of a query as they went in. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cache/spec.h"
#include "kube/request.h"
#include "kube/selector.h"
#include "support/fuzz.h"

/* Moves *text behind the requirement that is copied. Commas in parentheses part values. */
static char *take_requirement(const char **text)
{
	const char *start = *text, *at = start;
	for (bool inside = false; *at && (inside || *at != ','); at++)
		inside = *at == '(' || (inside && *at != ')');
	*text = *at ? at + 1 : at;
	return alloc_text(start, (size_t)(at - start));
}

static char *trim(char *text)
{
	text += strspn(text, " \t");
	size_t length = strlen(text);
	while (length && strchr(" \t", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* list: values, parted by commas */
static bool lists(char *list, struct json_slice value)
{
	bool found = false;
	for (char *next = list; next; list = next) {
		next = strchr(list, ',');
		if (next)
			*next++ = '\0';
		found |= json_string_equals(value, trim(list));
	}
	return found;
}

static struct json_slice label(struct json_slice labels, const char *key)
{
	struct json_slice value = json_get(labels, key);
	return json_type(value) == JSON_STRING ? value : (struct json_slice){NULL, 0};
}

/* One that the code under test has taken. */
static bool holds_plainly(char *text, struct json_slice labels)
{
	text = trim(text);
	if (*text == '!')
		return !label(labels, trim(text + 1)).data;
	char *paren = strchr(text, '('), *equals = strchr(text, '=');
	if (paren) {
		*paren = '\0';
		*strchr(paren + 1, ')') = '\0';
		char *key = trim(text), *operator= strpbrk(key, " \t");
		*operator++ = '\0';
		bool in = !strcmp(trim(operator), "in");
		return lists(paren + 1, label(labels, key)) == in;
	}
	if (!equals)
		return label(labels, text).data;
	bool not = equals > text && equals[-1] == '!';
	equals[not ? -1 : 0] = '\0';
	char *value = trim(equals + 1 + (!not &&equals[1] == '='));
	return json_string_equals(label(labels, trim(text)), value) != not ;
}

static bool matches_plainly(const char *text, struct json_slice labels)
{
	bool match = true;
	char *copy = alloc_string(text);
	const char *rest = trim(copy);
	bool empty = !*rest;
	while (*rest) {
		char *requirement = take_requirement(&rest);
		match &= holds_plainly(requirement, labels);
		alloc_free(requirement);
	}
	alloc_free(copy);
	return match || empty;
}

static char *decode(const char *query)
{
	struct buf out;
	buf_init(&out, 0);
	for (; *query; query++) {
		char digits[3] = {0};
		if (*query == '%') {
			memcpy(digits, query + 1, 2);
			buf_append_char(&out, (char)strtol(digits, NULL, 16));
			query += 2;
		} else {
			FUZZ_CHECK(isalnum((unsigned char)*query) || strchr("-._~", *query));
			buf_append_char(&out, *query);
		}
	}
	return out.length ? buf_take(&out) : alloc_string("");
}

static void check_query(const char *value)
{
	struct buf query;
	buf_init(&query, 0);
	request_query_add(&query, "watch", "true");
	request_query_add(&query, "labelSelector", value);
	const char start[] = "watch=true&labelSelector=";
	FUZZ_CHECK(!strncmp(query.data, start, strlen(start)));
	char *decoded = decode(query.data + strlen(start));
	FUZZ_CHECK(!strcmp(decoded, value));
	alloc_free(decoded);
	buf_fini(&query);
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return true;
	return false;
}

/* From the end on: each stretch between commas that no backslash stands before is empty or has such an equals sign. */
static bool compares(const char *text)
{
	size_t left = strlen(text);
	bool any = false, equals = false;
	while (left--) {
		size_t slashes = 0;
		while (slashes < left && text[left - slashes - 1] == '\\')
			slashes++;
		bool plain = slashes % 2 == 0;
		if (text[left] == ',' && plain) {
			if (any && !equals)
				return false;
			any = equals = false;
			continue;
		}
		any = true;
		equals |= text[left] == '=' && plain;
	}
	return !any || equals;
}

static void check_spec(const char *label_selector, const char *field_selector, bool taken)
{
	struct informer_spec from = {
	    .api_version = "v1", .kind = "Pod", .label_selector = label_selector, .field_selector = field_selector};
	struct spec spec;
	struct err err;
	bool valid = spec_init(&spec, &from, &err) == 0;
	FUZZ_CHECK(valid == (taken && !has_control(field_selector) && compares(field_selector)));
	if (!valid)
		return;
	FUZZ_CHECK(!strcmp(spec.label_selector ? spec.label_selector : "", label_selector));
	FUZZ_CHECK(!strcmp(spec.field_selector ? spec.field_selector : "", field_selector));
	spec_fini(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input_new(data, size);
	char *fields = strchr(input.head, ';');
	if (fields)
		*fields++ = '\0';
	struct err err;
	struct json_slice labels = json_trim(input.body.data, input.body.length);
	struct selector *selector = selector_new(input.head, &err);
	FUZZ_CHECK(selector || strstr(err.message, "expected"));
	if (json_validate(labels.data, labels.length, NULL))
		labels = (struct json_slice){NULL, 0};
	if (selector)
		FUZZ_CHECK(selector_matches(selector, labels) == matches_plainly(input.head, labels));
	check_spec(input.head, fields ? fields : "", selector != NULL);
	check_query(input.head);
	check_query(fields ? fields : "");
	selector_free(selector);
	fuzz_input_free(&input);
	return 0;
}
