/* sandbox: an in-memory API server in this process: a Lua state of its own, without limits, that lua/perilune/sandbox/
 * runs in, behind an exchange. Requests of any client go in, as to a real server; nothing is kept at the end. */
#ifndef PERILUNE_SCRIPT_SANDBOX_H
#define PERILUNE_SCRIPT_SANDBOX_H

#include <stdbool.h>

#include "base/err.h"
#include "net/loop.h"
#include "json/scan.h"

struct sandbox;

struct sandbox_options {
	const char *address;              /* as for listen_open */
	const char *cert_file, *key_file; /* PEM; NULL: plain HTTP */
	const char *ca_file;              /* PEM: what the kubeconfig trusts; NULL: the certificate itself */
	const char *const
	    *manifests; /* files and folders of YAML, applied before it is returned; ended by NULL, or NULL */
};

/* NULL with err. */
struct sandbox *sandbox_new(struct loop *loop, const struct sandbox_options *options, struct err *err);
/* Another server in its place, with nothing of the old one; the address and the kubeconfig may differ. Quicker than a
 * new sandbox, as its Lua has been compiled. After -1 it can only be restarted or freed. */
int sandbox_restart(struct sandbox *sandbox, const struct sandbox_options *options, struct err *err);
void sandbox_free(struct sandbox *sandbox); /* NULL is harmless; the kubeconfig is removed */

const char *sandbox_url(const struct sandbox *sandbox);
const char *sandbox_kubeconfig(const struct sandbox *sandbox); /* the path of a file */

struct exchange *sandbox_exchange(struct sandbox *sandbox);

/* From inside the process: calls a function of lua/perilune/sandbox/host.lua by its name with a text. The text that it
 * returns, if any, is appended to out. -1 with err where it raised. */
int sandbox_ask(struct sandbox *sandbox, const char *name, struct json_slice text, struct buf *out, struct err *err);

#endif
