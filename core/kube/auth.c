#include "kube/auth.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/secret.h"

ALLOC_TYPE(auth_type, "auth");

#define FRESH_SECONDS 60
/* After files that could not be read, so that a broken mount is not looked at for each request. */
#define RETRY_SECONDS 10

/* The texts of one moment; all owned, NULL where not used. */
struct material {
	char *ca, *cert, *key, *header;
};

struct auth {
	const struct config *config;
	struct exec *exec;        /* NULL where no plugin is used */
	unsigned exec_serial;     /* of the credential in material */
	struct material files;    /* what the configuration and its files say */
	struct material material; /* with the plugin's credential for what they don't */
	const char **headers;     /* point into material and config */
	struct http_tls *tls;     /* made of material; NULL for plain http */
	bool changed_tls;         /* since auth_refresh said so last */
	double due;               /* clock_now() of the next look at the files; negative: there are none to look at */
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

static struct material material_copy(const struct material *material)
{
	return (struct material){alloc_string(material->ca), alloc_string(material->cert), alloc_string(material->key),
				 alloc_string(material->header)};
}

/* The inline text, or the file's; *out NULL where neither is given. place and what: for messages. */
static int read_pem(const char *text, const char *file, const char *label, const char *place, const char *what,
		    char **out, struct err *err)
{
	*out = text ? alloc_string(text) : NULL;
	if (!text && file && !(*out = secret_read(file, NULL, err)))
		return err_prefix(err, "%s: %s", place, what);
	if (!*out || credential_is_pem(*out, label))
		return 0;
	secret_free(*out);
	*out = NULL;
	const char *where = text || !file ? "data" : file;
	return err_set(err, "", "%s: %s: %s holds no PEM block \"%s\"", place, what, where, label);
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

static char *bearer_header(const char *token)
{
	return alloc_format("Authorization: Bearer %s", token);
}

static int read_token(const struct config *config, char **header, struct err *err)
{
	const char *file = config->token_file;
	char *token = file ? secret_read(file, NULL, err) : alloc_string(config->token);
	if (!token)
		return err_prefix(err, "%s: token", config->user_place);
	token = trim(token);
	int result = 0;
	if (credential_is_token(token))
		*header = bearer_header(token);
	else
		result = err_set(err, "", "%s: token: %s is %s", config->user_place, file ? file : "it",
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
	const char *cluster = config->cluster_place, *user = config->user_place;
	if (read_pem(config->ca, config->ca_file, "CERTIFICATE", cluster, "certificate-authority", &material->ca,
		     err) ||
	    read_pem(config->cert, config->cert_file, "CERTIFICATE", user, "client-certificate", &material->cert,
		     err) ||
	    read_pem(config->key, config->key_file, "PRIVATE KEY", user, "client-key", &material->key, err) ||
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

/* Array and lines of before are gone after it. */
static void list_headers(struct auth *auth)
{
	size_t count = 0;
	char *const *lines = auth->config->impersonation;
	while (lines && lines[count])
		count++;
	alloc_free(auth->headers);
	auth->headers = alloc_zero((count + 2) * sizeof(*auth->headers));
	const char **next = auth->headers;
	if (auth->material.header)
		*next++ = auth->material.header;
	for (size_t i = 0; i < count; i++)
		*next++ = lines[i];
}

/* material is taken. */
static void use(struct auth *auth, struct material *material)
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
	auth->changed_tls |= tls;
	list_headers(auth);
}

/* What the user's entry says itself goes before what its plugin says, as for kubectl. */
static void combine(struct auth *auth)
{
	struct material material = material_copy(&auth->files);
	const struct credential *credential = auth->exec ? exec_credential(auth->exec) : &(struct credential){0};
	if (!material.header && credential->token)
		material.header = bearer_header(credential->token);
	if (!material.cert && credential->cert) {
		material.cert = alloc_string(credential->cert);
		material.key = alloc_string(credential->key);
	}
	auth->exec_serial = auth->exec ? exec_serial(auth->exec) : 0;
	use(auth, &material);
}

static bool has_files(const struct config *config)
{
	return config->ca_file || config->cert_file || config->key_file || config->token_file;
}

static int reload(struct auth *auth, struct err *err)
{
	struct material files;
	auth->due = clock_now() + RETRY_SECONDS;
	if (read_material(auth, &files, err))
		return -1;
	material_fini(&auth->files);
	auth->files = files;
	combine(auth);
	auth->due = has_files(auth->config) && !auth->plain ? clock_now() + FRESH_SECONDS : -1;
	return 0;
}

static bool has_token(const struct config *config)
{
	return config->token || config->token_file || config->username;
}

static void warn_plain(const struct config *config)
{
	if (has_token(config) || config->cert || config->cert_file || config->plugin)
		log_warn(NULL, "%s is plain http: the credentials of %s are not sent to it", config->server,
			 config->source);
}

struct auth *auth_new(struct loop *loop, const struct config *config, struct err *err)
{
	struct auth *auth = alloc_object(&auth_type, sizeof(*auth));
	auth->config = config;
	auth->plain = strncasecmp(config->server, "https://", 8) != 0;
	if (config->plugin && !auth->plain && !has_token(config))
		auth->exec = exec_new(loop, config);
	if (reload(auth, err)) {
		auth_free(auth);
		return NULL;
	}
	auth->changed_tls = false;
	if (auth->plain)
		warn_plain(config);
	return auth;
}

void auth_free(struct auth *auth)
{
	if (!auth)
		return;
	exec_free(auth->exec);
	http_tls_unref(auth->tls);
	material_fini(&auth->files);
	material_fini(&auth->material);
	alloc_free(auth->headers);
	alloc_object_free(&auth_type, auth);
}

int auth_refresh(struct auth *auth, bool *changed_tls, struct err *err)
{
	int result = 0;
	if (auth->exec && exec_serial(auth->exec) != auth->exec_serial)
		combine(auth);
	if (auth->due >= 0 && clock_now() >= auth->due)
		result = reload(auth, err);
	*changed_tls = auth->changed_tls;
	auth->changed_tls = false;
	return result;
}

bool auth_ready(struct auth *auth, struct exec_wait *wait)
{
	return !auth->exec || exec_ready(auth->exec, auth->files.ca, wait);
}

bool auth_reread(struct auth *auth)
{
	unsigned before = auth->generation;
	struct err err;
	if (auth->due >= 0 && reload(auth, &err))
		log_warn(NULL, "after a refusal by %s: %s", auth->config->server, err.message);
	return auth->generation != before;
}

bool auth_reject(struct auth *auth)
{
	return auth_reread(auth) || (auth->exec && exec_reject(auth->exec));
}

struct http_tls *auth_tls(const struct auth *auth)
{
	return auth->tls;
}

const char *const *auth_headers(const struct auth *auth)
{
	return auth->headers;
}

unsigned auth_generation(const struct auth *auth)
{
	return auth->generation;
}
