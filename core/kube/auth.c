#include "kube/auth.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/secret.h"

ALLOC_TYPE(auth_type, "auth");

#define FRESH_SECONDS 60
#define RETRY_SECONDS                                                                                                  \
	10 /* after files that could not be read, so that a broken mount is not looked at for each request */

/* The texts of one moment; all owned, NULL where not used. */
struct material {
	char *ca, *cert, *key, *header;
};

struct auth {
	const struct config *config;
	struct material material;
	struct http_tls *tls; /* made of material; NULL for plain http */
	double due;           /* clock_now() of the next look at the files; negative: there are none to look at */
	unsigned generation;
	bool plain; /* http://: no credentials leave this process */
};

static void material_fini(struct material *material)
{
	alloc_free(material->ca);
	alloc_free(material->cert);
	secret_free(material->key);
	secret_free(material->header);
	*material = (struct material){0};
}

/* The inline text, or the file's; *out NULL where neither is given. */
static int read_pem(const char *text, const char *file, const char *label, const char *what, char **out,
		    struct err *err)
{
	*out = text ? alloc_string(text) : NULL;
	if (!text && file && !(*out = secret_read(file, NULL, err)))
		return err_prefix(err, "%s", what);
	if (!*out)
		return 0;
	const char *begin = strstr(*out, "-----BEGIN ");
	if (begin && strstr(begin, label))
		return 0;
	secret_free(*out);
	*out = NULL;
	const char *where = text || !file ? "data" : file;
	return err_set(err, "", "%s: %s holds no PEM block \"%s\"", what, where, label);
}

/* A header is one line of visible characters; anything else would be a way to add headers. */
static bool is_token(const char *token)
{
	for (const char *at = token; *at; at++)
		if (*at <= ' ' || *at >= 0x7F)
			return false;
	return *token != '\0';
}

static char *trim(char *text)
{
	size_t space = strspn(text, " \t\r\n"), length = strlen(text + space);
	while (length && strchr(" \t\r\n", text[space + length - 1]))
		length--;
	char *trimmed = alloc_text(text + space, length);
	secret_free(text);
	return trimmed;
}

static int read_token(const struct config *config, char **header, struct err *err)
{
	const char *where = config->token_file ? config->token_file : "token of the kubeconfig";
	char *token = config->token_file ? secret_read(config->token_file, NULL, err) : alloc_string(config->token);
	if (!token)
		return err_prefix(err, "token");
	token = trim(token);
	int result = 0;
	if (is_token(token))
		*header = alloc_format("Authorization: Bearer %s", token);
	else
		result = err_set(err, "", "%s is %s", where,
				 *token ? "no token: it holds spaces or other unusual characters" : "empty");
	secret_free(token);
	return result;
}

static char *basic_header(const struct config *config)
{
	char *pair = alloc_format("%s:%s", config->username, config->password ? config->password : "");
	char *encoded = secret_encode(pair, strlen(pair));
	char *header = alloc_format("Authorization: Basic %s", encoded);
	secret_free(pair);
	secret_free(encoded);
	return header;
}

static int read_header(const struct config *config, char **header, struct err *err)
{
	*header = NULL;
	if (config->token || config->token_file)
		return read_token(config, header, err);
	if (config->username)
		*header = basic_header(config);
	return 0;
}

static int read_material(const struct auth *auth, struct material *material, struct err *err)
{
	const struct config *config = auth->config;
	*material = (struct material){0};
	if (auth->plain)
		return 0;
	if (read_pem(config->ca, config->ca_file, "CERTIFICATE", "certificate-authority", &material->ca, err) ||
	    read_pem(config->cert, config->cert_file, "CERTIFICATE", "client-certificate", &material->cert, err) ||
	    read_pem(config->key, config->key_file, "PRIVATE KEY", "client-key", &material->key, err) ||
	    read_header(config, &material->header, err)) {
		material_fini(material);
		return -1;
	}
	return 0;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct http_tls *make_tls(const struct config *config, const struct material *material)
{
	return http_tls_new(&(struct http_tls_options){
	    .ca = material->ca,
	    .cert = material->cert,
	    .key = material->key,
	    .server_name = config->tls_server_name,
	    .insecure = config->insecure,
	});
}

/* material is taken. */
static void use(struct auth *auth, struct material *material, bool *changed_tls)
{
	struct material *old = &auth->material;
	bool tls = !same(old->ca, material->ca) || !same(old->cert, material->cert) || !same(old->key, material->key);
	if (tls || !same(old->header, material->header))
		auth->generation++;
	if (!auth->plain && (tls || !auth->tls)) {
		http_tls_unref(auth->tls);
		auth->tls = make_tls(auth->config, material);
	}
	material_fini(old);
	*old = *material;
	*changed_tls = tls;
}

static bool has_files(const struct config *config)
{
	return config->ca_file || config->cert_file || config->key_file || config->token_file;
}

static int reload(struct auth *auth, bool *changed_tls, struct err *err)
{
	struct material material;
	*changed_tls = false;
	auth->due = clock_now() + RETRY_SECONDS;
	if (read_material(auth, &material, err))
		return -1;
	use(auth, &material, changed_tls);
	auth->due = has_files(auth->config) && !auth->plain ? clock_now() + FRESH_SECONDS : -1;
	return 0;
}

static void warn_plain(const struct config *config)
{
	if (config->token || config->token_file || config->username || config->cert || config->cert_file)
		log_warn(NULL, "%s is plain http: the credentials of %s are not sent to it", config->server,
			 config->source);
}

struct auth *auth_new(const struct config *config, struct err *err)
{
	struct auth *auth = alloc_object(&auth_type, sizeof(*auth));
	bool changed;
	auth->config = config;
	auth->plain = strncasecmp(config->server, "https://", 8) != 0;
	if (reload(auth, &changed, err)) {
		err_prefix(err, "%s", config->source);
		auth_free(auth);
		return NULL;
	}
	if (auth->plain)
		warn_plain(config);
	return auth;
}

void auth_free(struct auth *auth)
{
	if (!auth)
		return;
	http_tls_unref(auth->tls);
	material_fini(&auth->material);
	alloc_object_free(&auth_type, auth);
}

int auth_refresh(struct auth *auth, bool *changed_tls, struct err *err)
{
	*changed_tls = false;
	if (auth->due < 0 || clock_now() < auth->due)
		return 0;
	return reload(auth, changed_tls, err);
}

bool auth_reject(struct auth *auth)
{
	unsigned before = auth->generation;
	struct err err;
	bool changed_tls;
	if (auth->due >= 0 && reload(auth, &changed_tls, &err))
		log_warn(NULL, "after a refusal by %s: %s", auth->config->server, err.message);
	return auth->generation != before;
}

struct http_tls *auth_tls(const struct auth *auth)
{
	return auth->tls;
}

const char *auth_header(const struct auth *auth)
{
	return auth->material.header;
}

unsigned auth_generation(const struct auth *auth)
{
	return auth->generation;
}
