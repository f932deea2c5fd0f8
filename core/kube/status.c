#include "kube/status.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

#define LONGEST_WAIT 3600 /* as for the Retry-After header */

/* What a status means when no Status object says more; client-go's names. */
static const struct {
	int code;
	const char *reason, *text;
} usual[] = {
    {400, "BadRequest", "Bad Request"},
    {401, "Unauthorized", "Unauthorized"},
    {403, "Forbidden", "Forbidden"},
    {404, "NotFound", "Not Found"},
    {405, "MethodNotAllowed", "Method Not Allowed"},
    {406, "NotAcceptable", "Not Acceptable"},
    {408, "Timeout", "Request Timeout"},
    {409, "Conflict", "Conflict"},
    {410, "Gone", "Gone"},
    {413, "RequestEntityTooLarge", "Request Entity Too Large"},
    {415, "UnsupportedMediaType", "Unsupported Media Type"},
    {422, "Invalid", "Unprocessable Entity"},
    {429, "TooManyRequests", "Too Many Requests"},
    {500, "InternalError", "Internal Server Error"},
    {502, "InternalError", "Bad Gateway"},
    {503, "ServiceUnavailable", "Service Unavailable"},
    {504, "Timeout", "Gateway Timeout"},
};

static const char *usual_reason(int code)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (usual[i].code == code)
			return usual[i].reason;
	return code >= 500 ? "InternalError" : "Unknown";
}

static const char *usual_text(int code)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (usual[i].code == code)
			return usual[i].text;
	return code >= 300 && code < 400 ? "a redirect, which is not followed" : "";
}

static bool is_retryable(int code)
{
	return code == 408 || code == 429 || code >= 500;
}

/* A server, or a proxy before it, that gave up waiting says nothing about what happens behind it. etcd's own time-outs,
 * and the write that was under way when its leader changed, arrive as plain 500s. */
static bool may_have_happened(const struct err *err)
{
	if (err->code == 502 || err->code == 504 || err->code == 408)
		return true;
	return err->code == 500 && (!strcmp(err->reason, "ServerTimeout") || !strcmp(err->reason, "Timeout") ||
				    strstr(err->message, "timed out") || strstr(err->message, "leader changed") ||
				    strstr(err->message, "deadline exceeded"));
}

struct json_slice status_body(const struct buf *body)
{
	if (!body || !body->length || json_validate(body->data, body->length, NULL))
		return (struct json_slice){NULL, 0};
	return json_trim(body->data, body->length);
}

bool status_is(struct json_slice value)
{
	return json_type(value) == JSON_OBJECT && json_string_equals(json_get(value, "kind"), "Status");
}

/* code: the answer's; 0 takes the Status' own. */
static void fill(struct json_slice status, int64_t code, struct err *err)
{
	int64_t wait = -1;
	if (!code)
		json_integer(json_get(status, "code"), &code);
	if (code < 0 || code > 999)
		code = 0;
	char *reason = json_string_copy(json_get(status, "reason"));
	char *message = json_string_copy(json_get(status, "message"));
	const char *word = reason && *reason ? reason : usual_reason((int)code);
	if (message && *message)
		err_set(err, word, "%s", message);
	else
		err_set(err, word, "HTTP %d: %s", (int)code, word);
	alloc_free(reason);
	alloc_free(message);
	err->code = (int)code;
	err->retryable = is_retryable((int)code);
	if (!json_integer(json_get(json_get(status, "details"), "retryAfterSeconds"), &wait) && wait > 0)
		err->retry_after = wait > LONGEST_WAIT ? LONGEST_WAIT : (double)wait;
}

void status_of_object(struct json_slice status, struct err *err)
{
	fill(status, 0, err);
}

/* The first line of a plain answer, such as a proxy's; a page of HTML tells nobody anything. */
static void take_plain_text(const struct buf *body, char out[200])
{
	size_t length = 0;
	const char *text = body ? buf_text(body) : "";
	text += strspn(text, " \t\r\n");
	if (*text != '<' && *text != '{')
		length = strcspn(text, "\r\n");
	if (length > 199)
		for (length = 199; length && utf8_is_tail((unsigned char)text[length]);)
			length--;
	for (size_t i = 0; i < length; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7F ? ' ' : text[i];
	out[length] = '\0';
}

static void of_answer(const struct http_result *result, struct err *err)
{
	int code = result->head.status;
	struct json_slice status = status_body(result->body);
	if (status_is(status)) {
		fill(status, code, err);
	} else {
		char text[200];
		take_plain_text(result->body, text);
		const char *meaning = *text ? text : usual_text(code);
		err_set(err, usual_reason(code), "HTTP %d%s%s", code, *meaning ? ": " : "", meaning);
	}
	err->code = code;
	err->retryable = is_retryable(code);
	if (result->head.retry_after >= 0)
		err->retry_after = result->head.retry_after;
}

static void of_failure(const struct http_result *result, struct err *err)
{
	static const struct {
		const char *reason;
		bool retryable;
	} meanings[] = {
	    [HTTP_CONNECT] = {"Connection", true},  [HTTP_UNTRUSTED] = {"Connection", false},
	    [HTTP_TIMEOUT] = {"Timeout", true},     [HTTP_BROKEN] = {"Connection", true},
	    [HTTP_TOO_LARGE] = {"TooLarge", false}, [HTTP_REFUSED] = {"BadRequest", false},
	};
	const char *message = result->message && *result->message ? result->message : "the request failed";
	err_set(err, meanings[result->failure].reason, "%s", message);
	err->retryable = meanings[result->failure].retryable;
}

void status_of_result(const struct http_result *result, bool write, struct err *err)
{
	if (result->failure == HTTP_NONE)
		of_answer(result, err);
	else
		of_failure(result, err);
	err->outcome_unknown = write && (result->failure == HTTP_NONE ? may_have_happened(err) : result->sent);
}

struct json_slice status_causes(struct json_slice status)
{
	struct json_slice causes = json_get(json_get(status, "details"), "causes");
	return json_type(causes) == JSON_ARRAY ? causes : (struct json_slice){NULL, 0};
}

static bool mentions(struct json_slice string, const char *words)
{
	char *text = json_string_copy(string);
	bool found = text && strstr(text, words);
	alloc_free(text);
	return found;
}

bool status_is_too_large_version(struct json_slice status)
{
	int64_t code = 0;
	json_integer(json_get(status, "code"), &code);
	if (code != 504 && code != 410)
		return false;
	struct json_iter iter = json_iterate(status_causes(status));
	while (json_next(&iter))
		if (json_string_equals(json_get(iter.value, "reason"), "ResourceVersionTooLarge") ||
		    mentions(json_get(iter.value, "message"), "Too large resource version"))
			return true;
	return mentions(json_get(status, "message"), "Too large resource version");
}
