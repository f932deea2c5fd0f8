#include "kube/resource.h"

#include <string.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

/* Copies one part of an apiVersion, which is of small letters, digits, dots and dashes; false when it is empty or too
 * long, or has others. */
static bool take_part(const char *part, size_t length, char *out, size_t size)
{
	if (!length || length >= size || part[0] == '.')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_plain(part[i]) || (part[i] >= 'A' && part[i] <= 'Z'))
			return false;
	memcpy(out, part, length);
	out[length] = '\0';
	return true;
}

/* "v1", "v1beta2": no group is called so, but kinds are written behind them ("v1/Pod") by mistake. */
static bool is_version(const char *text)
{
	size_t digits = *text == 'v' ? strspn(text + 1, "0123456789") : 0;
	const char *rest = text + 1 + digits; /* "", "alpha1", "beta2" */
	return digits && !rest[strspn(rest, "alphabet0123456789")];
}

int resource_split(const char *api_version, char group[254], char version[64], struct err *err)
{
	const char *slash = strchr(api_version, '/'), *rest = slash ? slash + 1 : api_version;
	group[0] = '\0';
	if ((slash && !take_part(api_version, (size_t)(slash - api_version), group, 254)) ||
	    !take_part(rest, strlen(rest), version, 64) || is_version(group))
		return err_set(err, "BadRequest",
			       "\"%s\" is no apiVersion; it reads VERSION or GROUP/VERSION, as \"v1\" or \"apps/v1\"",
			       api_version);
	return 0;
}

static void append_encoded(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (is_plain(*text))
			buf_append_char(out, *text);
		else
			buf_append_format(out, "%%%02X", (unsigned)(unsigned char)*text);
	}
}

/* The API server decodes a path before it splits it, and proxies may resolve dots, so that "a%2Fstatus" would be the
 * subresource of another object, and "" the collection. No object can be named so. Such a name is encoded twice: the
 * server then looks for a name with a percent sign in it, which no object can have either, and says NotFound. */
static void append_segment(struct buf *out, const char *text)
{
	buf_append_char(out, '/');
	if (!*text)
		buf_append_text(out, "%25");
	else if (!strcmp(text, ".") || !strcmp(text, ".."))
		buf_append_text(out, text[1] ? "%252E%252E" : "%252E");
	else
		for (; *text; text++) {
			char one[2] = {*text, '\0'};
			if (*text == '/')
				buf_append_text(out, "%252F");
			else
				append_encoded(out, one);
		}
}

void resource_path(const struct resource *resource, const char *namespace, const char *name, const char *subresource,
		   struct buf *out)
{
	buf_append_text(out, *resource->group ? "/apis" : "/api");
	if (*resource->group)
		append_segment(out, resource->group);
	append_segment(out, resource->version);
	if (namespace && *namespace) {
		buf_append_text(out, "/namespaces");
		append_segment(out, namespace);
	}
	append_segment(out, resource->plural);
	if (name)
		append_segment(out, name);
	if (subresource)
		append_segment(out, subresource);
}

void resource_name(const struct resource *resource, struct buf *out)
{
	buf_append_text(out, resource->plural);
	if (*resource->group)
		buf_append_format(out, ".%s", resource->group);
}
