#include "kube/credential.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "kube/secret.h"
#include "json/scan.h"

void credential_fini(struct credential *credential)
{
	secret_free(credential->token);
	secret_free(credential->cert);
	secret_free(credential->key);
	*credential = (struct credential){0};
}

bool credential_is_token(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at >= 0x7F)
			return false;
	return *text != '\0';
}

bool credential_is_pem(const char *text, const char *label)
{
	const char *begin = strstr(text, "-----BEGIN ");
	return begin && strstr(begin, label);
}

/* *out NULL when the member is absent, null or "". */
static int read_text(struct json_slice object, const char *key, char **out, struct err *err)
{
	struct json_slice value = json_get(object, key);
	enum json_type type = json_type(value);
	*out = NULL;
	if (type == JSON_NONE || type == JSON_NULL || json_string_equals(value, ""))
		return 0;
	if (type != JSON_STRING)
		return err_set(err, "", "its status.%s is no text", key);
	struct buf text;
	buf_init(&text, 0);
	json_string_append(value, &text);
	bool whole = strlen(buf_text(&text)) == text.length;
	*out = buf_take(&text);
	if (whole)
		return 0;
	secret_free(*out);
	*out = NULL;
	return err_set(err, "", "its status.%s contains a NUL character", key);
}

static int read_expiry(struct json_slice status, double *expires_at, struct err *err)
{
	char *text;
	*expires_at = INFINITY;
	if (read_text(status, "expirationTimestamp", &text, err))
		return -1;
	if (text)
		*expires_at = clock_parse(text);
	secret_free(text);
	if (isnan(*expires_at))
		return err_set(err, "", "its status.expirationTimestamp is no time as RFC 3339 writes it");
	return 0;
}

static int check(const struct credential *credential, struct err *err)
{
	if (!credential->token && !credential->cert && !credential->key)
		return err_set(err, "", "its status holds neither a token nor a client certificate");
	if (!credential->cert != !credential->key)
		return err_set(err, "", "its status holds only one of clientCertificateData and clientKeyData");
	if (credential->token && !credential_is_token(credential->token))
		return err_set(err, "", "its status.token holds spaces or other unusual characters");
	if (credential->cert && !credential_is_pem(credential->cert, "CERTIFICATE"))
		return err_set(err, "", "its status.clientCertificateData holds no PEM block \"CERTIFICATE\"");
	if (credential->key && !credential_is_pem(credential->key, "PRIVATE KEY"))
		return err_set(err, "", "its status.clientKeyData holds no PEM block \"PRIVATE KEY\"");
	return 0;
}

static int read_status(struct credential *credential, struct json_slice status, struct err *err)
{
	if (json_type(status) != JSON_OBJECT)
		return err_set(err, "", "it has no status");
	if (read_text(status, "token", &credential->token, err) ||
	    read_text(status, "clientCertificateData", &credential->cert, err) ||
	    read_text(status, "clientKeyData", &credential->key, err) ||
	    read_expiry(status, &credential->expires_at, err))
		return -1;
	return check(credential, err);
}

static int check_kind(struct json_slice root, const char *api_version, struct err *err)
{
	if (json_type(root) != JSON_OBJECT)
		return err_set(err, "", "it is no JSON object");
	if (!json_string_equals(json_get(root, "kind"), "ExecCredential"))
		return err_set(err, "", "its kind is not ExecCredential");
	if (!json_string_equals(json_get(root, "apiVersion"), api_version))
		return err_set(err, "", "its apiVersion is not %s, which the kubeconfig asks for", api_version);
	return 0;
}

int credential_read(struct credential *credential, const char *bytes, size_t length, const char *api_version,
		    struct err *err)
{
	*credential = (struct credential){0};
	bool valid = json_validate(bytes, length, NULL) == 0;
	struct json_slice root = valid ? json_trim(bytes, length) : (struct json_slice){NULL, 0};
	if (!check_kind(root, api_version, err) && !read_status(credential, json_get(root, "status"), err))
		return 0;
	credential_fini(credential);
	return -1;
}
