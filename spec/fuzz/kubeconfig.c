/* Bytes as a kubeconfig file: taken or refused with a message, the same when its YAML has become JSON, and what comes
 * out is fit to connect with. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kube/config.h"
#include "support/fuzz.h"
#include "json/yaml.h"

/* A file that lies in memory, under the same name for every input. */
static const char *write_file(struct json_slice bytes)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0) {
		fd = memfd_create("kubeconfig", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, 0));
	FUZZ_CHECK(pwrite(fd, bytes.data, bytes.length, 0) == (ssize_t)bytes.length);
	return path;
}

static struct config *load(struct json_slice bytes, struct err *err)
{
	struct config_options options = {.kubeconfig = write_file(bytes)};
	err_clear(err);
	struct config *config = config_load(&options, err);
	FUZZ_CHECK(config || *err->message);
	return config;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void check_config(const struct config *config)
{
	size_t length = strlen(config->server);
	FUZZ_CHECK(!strncasecmp(config->server, "http://", 7) || !strncasecmp(config->server, "https://", 8));
	FUZZ_CHECK(config->server[length - 1] != '/' && !strpbrk(config->server, "@ \t\r\n?#"));
	FUZZ_CHECK(config->namespace && *config->namespace && config->context && !config->in_cluster);
	FUZZ_CHECK(!config->ca || !config->ca_file);
	FUZZ_CHECK(!config->insecure || (!config->ca && !config->ca_file));
	FUZZ_CHECK((config->cert || config->cert_file) == (config->key || config->key_file));
	FUZZ_CHECK(!config->token || !config->password);
}

static void check_same(const struct config *a, const struct config *b)
{
	FUZZ_CHECK(same(a->server, b->server) && same(a->context, b->context) && same(a->namespace, b->namespace));
	FUZZ_CHECK(same(a->token, b->token) && same(a->token_file, b->token_file) && same(a->username, b->username));
	FUZZ_CHECK(same(a->cert, b->cert) && same(a->key, b->key) && same(a->ca, b->ca) && a->insecure == b->insecure);
}

static int keep_first(void *data, struct json_slice json, struct err *err)
{
	(void)err;
	struct buf *out = data;
	return out->length ? 0 : buf_append(out, json.data, json.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_slice bytes = {(const char *)data, size};
	struct err err, json_err;
	struct buf json;
	buf_init(&json, 0);
	struct config *config = load(bytes, &err);
	if (config)
		check_config(config);
	if (!yaml_to_json(bytes.data, bytes.length, keep_first, &json, NULL) && json.length) {
		struct config *again = load((struct json_slice){json.data, json.length}, &json_err);
		FUZZ_CHECK(!config == !again);
		if (config)
			check_same(config, again);
		else
			FUZZ_CHECK(!strcmp(err.message, json_err.message));
		config_free(again);
	} else {
		FUZZ_CHECK(!config);
	}
	config_free(config);
	buf_fini(&json);
	return 0;
}
