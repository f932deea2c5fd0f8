#include <string.h>

#include "base/alloc.h"
#include "net/http_private.h"

ALLOC_TYPE(tls_type, "http_tls");

struct http_tls {
	unsigned count;
	char *ca;
	char *identity; /* the certificate and behind it the key: both blobs are the whole of it */
	char *server_name;
	bool insecure;
};

/* libcurl reuses a connection only for equal CA and certificate blobs, but does not compare keys. OpenSSL skips PEM
 * blocks that it was not asked for, so with the key in the certificate's blob a changed key makes another connection
 * too. */
static char *join_identity(const char *cert, const char *key)
{
	return cert ? alloc_format("%s\n%s", cert, key ? key : "") : NULL;
}

struct http_tls *http_tls_new(const struct http_tls_options *options)
{
	struct http_tls *tls = alloc_object(&tls_type, sizeof(*tls));
	tls->count = 1;
	tls->ca = alloc_string(options->ca);
	tls->identity = join_identity(options->cert, options->key);
	tls->server_name = alloc_string(options->server_name);
	tls->insecure = options->insecure;
	return tls;
}

struct http_tls *http_tls_ref(struct http_tls *tls)
{
	tls->count++;
	return tls;
}

void http_tls_unref(struct http_tls *tls)
{
	if (!tls || --tls->count)
		return;
	if (tls->identity)
		explicit_bzero(tls->identity, strlen(tls->identity));
	alloc_free(tls->ca);
	alloc_free(tls->identity);
	alloc_free(tls->server_name);
	alloc_object_free(&tls_type, tls);
}

/* Borrowed: the request holds the tls for as long as the easy handle lives. */
static void set_blob(CURL *easy, CURLoption option, char *text)
{
	struct curl_blob blob = {.data = text, .len = strlen(text), .flags = CURL_BLOB_NOCOPY};
	curl_easy_setopt(easy, option, &blob);
}

void http_tls_apply(const struct http_tls *tls, CURL *easy)
{
	if (tls->ca) {
		/* Both defaults off, else the system's authorities are trusted beside this one. */
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca);
	}
	if (tls->identity) {
		curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
		curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
		/* Without one, OpenSSL asks the terminal for the passphrase of an encrypted key, and the loop waits. */
		curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
		set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->identity);
		set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->identity);
	}
	if (tls->insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

const char *http_tls_server_name(const struct http_tls *tls)
{
	return tls->server_name;
}
