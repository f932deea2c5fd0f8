#include "cli/options.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "script/host.h"

struct flag {
	const char *name;
	char letter;       /* 0: no short form */
	const char *value; /* as help calls it; NULL: a switch */
	unsigned group;    /* 0: any verb, and none, takes it */
	const struct value_kind *kind;
	size_t field; /* offset in struct options */
	const char *help;
};

#define FIELD(name) offsetof(struct options, name)

static const struct flag flags[] = {
    {"kubeconfig", 0, "FILE", FLAGS_CLUSTER, &value_text, FIELD(kubeconfig),
     "else $KUBECONFIG, the pod's service account or ~/.kube/config"},
    {"context", 0, "NAME", FLAGS_CLUSTER, &value_text, FIELD(context),
     "one of the kubeconfig's; else its current-context"},
    {"namespace", 'n', "NAME", FLAGS_CLUSTER, &value_namespace, FIELD(namespace),
     "watch this namespace only; else all"},
    {"sandbox", 0, NULL, FLAGS_SANDBOX, &value_switch, FIELD(sandbox), "an in-memory API server in this process"},
    {"manifests", 0, "FILE|DIR", FLAGS_MANIFESTS, &value_path, FIELD(manifests),
     "YAML that is put into the sandbox first; repeatable"},
    {"tls-cert", 0, "FILE", FLAGS_TLS, &value_text, FIELD(tls_cert),
     "PEM, made for the address: HTTPS in place of HTTP"},
    {"tls-key", 0, "FILE", FLAGS_TLS, &value_text, FIELD(tls_key), "PEM, its private key"},
    {"tls-ca", 0, "FILE", FLAGS_TLS, &value_text, FIELD(tls_ca),
     "PEM, for the kubeconfig: who issued it; else it is its own"},
    {"set", 0, "KEY=VALUE", FLAGS_SCRIPT, &value_setting, FIELD(settings), "read as k8s.config.KEY; repeatable"},
    {"dry-run", 0, NULL, FLAGS_SCRIPT, &value_switch, FIELD(dry_run), "writes go out with dryRun=All"},
    {"jit", 0, NULL, FLAGS_SCRIPT, &value_switch, FIELD(jit), "compile scripts; the time limit then only reports"},
    {"memory-limit", 0, "SIZE", FLAGS_SCRIPT, &value_size, FIELD(memory_limit), "of each script (64MiB); 0 is none"},
    {"time-limit", 0, "DURATION", FLAGS_SCRIPT, &value_duration, FIELD(time_limit),
     "between two yields (1s); 0 is none"},
    {"unsafe-libs", 0, NULL, FLAGS_SCRIPT, &value_switch, FIELD(unsafe_libs),
     "scripts get ffi, io, os.execute and the like"},
    {"sync-timeout", 0, "DURATION", FLAGS_HOST, &value_duration, FIELD(sync_timeout),
     "caches without progress for this long end the program (2m); 0: never"},
    {"grace-period", 0, "DURATION", FLAGS_HOST, &value_duration, FIELD(grace_period),
     "what running calls get at the end (30s)"},
    {"watch", 0, NULL, FLAGS_WATCH, &value_choice, FIELD(watch),
     "reload when files change; a mounted ConfigMap's do without it, unless --watch=false"},
    {"leader-elect", 0, NULL, FLAGS_ELECTION, &value_switch, FIELD(leader_elect),
     "of several hosts one leads; controllers and timers marked leader run there"},
    {"lease", 0, "NAMESPACE/NAME", FLAGS_ELECTION, &value_lease, FIELD(lease),
     "what they share (perilune, in the pod's or context's namespace)"},
    {"lease-duration", 0, "DURATION", FLAGS_ELECTION, &value_duration, FIELD(lease_duration),
     "others wait so long before they take it from one that is gone (15s)"},
    {"renew-deadline", 0, "DURATION", FLAGS_ELECTION, &value_duration, FIELD(renew_deadline),
     "a leader gives up when it could not renew it for so long (10s)"},
    {"retry-period", 0, "DURATION", FLAGS_ELECTION, &value_duration, FIELD(retry_period), "between two tries (2s)"},
    {"rbac", 0, "FILE", FLAGS_SPECS, &value_text, FIELD(rbac),
     "gets the role that all requests of scripts under test needed, as YAML"},
    {"service-account", 0, "NAMESPACE/NAME", FLAGS_ACCOUNT, &value_lease, FIELD(account),
     "who gets the rights (the script's name, in the context's namespace or default)"},
    {"listen", 0, "ADDR:PORT", FLAGS_LISTEN, &value_address, FIELD(listen),
     "HTTP pages (127.0.0.1:8080, in a cluster :8080), or off"},
    {"socket", 0, "PATH", FLAGS_SOCKET, &value_text, FIELD(socket),
     "where status and reload find the host (a place that they look into by themselves)"},
    {"log-format", 0, "FORMAT", FLAGS_LOG, &value_format, FIELD(log_format), "text or json"},
    {"log-level", 0, "LEVEL", FLAGS_LOG, &value_level, FIELD(log_level), "debug, info, warn or error"},
    {"output", 'o', "FORMAT", FLAGS_OUTPUT, &value_output, FIELD(output), "text or json"},
    {"help", 'h', NULL, 0, &value_switch, FIELD(help), "this text"},
    {"version", 0, NULL, 0, &value_switch, FIELD(version), NULL},
};

#define FLAG_COUNT (sizeof(flags) / sizeof(*flags))

/* The arguments not yet read. */
struct arguments {
	char **next;
	int count;
	bool early[FLAG_COUNT]; /* given before the verb, so not yet held against it */
};

static const struct flag *find_flag(const char *name, size_t length)
{
	for (const struct flag *flag = flags; flag < flags + FLAG_COUNT; flag++)
		if (strlen(flag->name) == length && !memcmp(flag->name, name, length))
			return flag;
	return NULL;
}

static const struct flag *find_letter(char letter)
{
	for (const struct flag *flag = flags; flag < flags + FLAG_COUNT; flag++)
		if (flag->letter && flag->letter == letter)
			return flag;
	return NULL;
}

/* "--name", "--name=value", "-n", "-nvalue" or "-n=value": the flag, or NULL; *value is NULL when it stands elsewhere.
 */
static const struct flag *recognise(const char *argument, const char **value)
{
	*value = NULL;
	if (!strncmp(argument, "--", 2)) {
		const char *equals = strchr(argument, '=');
		*value = equals ? equals + 1 : NULL;
		return find_flag(argument + 2, equals ? (size_t)(equals - argument - 2) : strlen(argument + 2));
	}
	const struct flag *flag = find_letter(argument[1]);
	if (flag && argument[2])
		*value = argument + 2 + (argument[2] == '=');
	return flag;
}

static bool takes(const struct verb *verb, const struct flag *flag)
{
	return !verb || !flag->group || (verb->flags & flag->group);
}

static int unknown_flag(const struct verb *verb, const char *argument)
{
	size_t length = strcspn(argument, "=");
	char *word = alloc_text(argument, length);
	struct suggest suggest;
	suggest_init(&suggest, word + strspn(word, "-"));
	for (const struct flag *flag = flags; flag < flags + FLAG_COUNT; flag++)
		if (takes(verb, flag))
			suggest_offer(&suggest, flag->name);
	int code = suggest.best ? cli_usage(verb, "unknown flag %s: did you mean --%s?", word, suggest.best)
				: cli_usage(verb, "unknown flag %s", word);
	alloc_free(word);
	return code;
}

/* A value that looks like a flag is a forgotten value; "--flag=--value" says that it is meant. */
static const char *next_value(struct arguments *arguments)
{
	if (!arguments->count || !strncmp(*arguments->next, "--", 2))
		return NULL;
	arguments->count--;
	return *arguments->next++;
}

static int read_flag(struct options *options, const struct flag *flag, const char *value, struct arguments *arguments)
{
	if (!value)
		value = flag->value ? next_value(arguments) : "true";
	if (!value)
		return cli_usage(options->verb, "--%s needs a value: %s", flag->name, flag->kind->expected);
	if (flag->kind->read(value, (char *)options + flag->field))
		return cli_usage(options->verb, "bad value \"%s\" for --%s: expected %s", value, flag->name,
				 flag->kind->expected);
	return 0;
}

/* A flag of busted: it and its values go on untouched. */
static int hand_on(struct options *options, const char *argument, int count, struct arguments *arguments)
{
	value_texts_add(&options->handed_on, argument);
	for (; count > 1; count--) {
		if (!arguments->count)
			return cli_usage(options->verb, "%s needs a value", argument);
		value_texts_add(&options->handed_on, *arguments->next++);
		arguments->count--;
	}
	return 0;
}

static int read_dashed(struct options *options, const char *argument, struct arguments *arguments)
{
	const struct verb *verb = options->verb;
	const char *value;
	const struct flag *flag = recognise(argument, &value);
	if (flag && takes(verb, flag)) {
		arguments->early[flag - flags] = !verb;
		return read_flag(options, flag, value, arguments);
	}
	int foreign = verb && verb->foreign ? verb->foreign(argument) : 0;
	if (foreign)
		return hand_on(options, argument, foreign, arguments);
	if (flag)
		return cli_usage(verb, "%s takes no --%s", verb->name, flag->name);
	return unknown_flag(verb, argument);
}

static int read_verb(struct options *options, const char *word, const struct arguments *arguments)
{
	const struct verb *verb = cli_verb(word);
	if (!verb)
		return cli_unknown_verb(word);
	options->verb = verb;
	for (size_t i = 0; i < FLAG_COUNT; i++)
		if (arguments->early[i] && !takes(verb, &flags[i]))
			return cli_usage(verb, "%s takes no --%s", verb->name, flags[i].name);
	return 0;
}

static int read_operand(struct options *options, const char *argument, const struct arguments *arguments)
{
	if (!options->verb)
		return read_verb(options, argument, arguments);
	value_texts_add(&options->operands, argument);
	value_texts_add(&options->handed_on, argument);
	return 0;
}

static int read_arguments(struct options *options, struct arguments *arguments)
{
	bool flags_ended = false;
	while (arguments->count && !options->help) {
		const char *argument = *arguments->next++;
		int code = 0;
		arguments->count--;
		if (!flags_ended && !strcmp(argument, "--"))
			flags_ended = true;
		else if (!flags_ended && argument[0] == '-' && argument[1])
			code = read_dashed(options, argument, arguments);
		else
			code = read_operand(options, argument, arguments);
		if (code)
			return code;
	}
	return 0;
}

static int check_operands(const struct options *options)
{
	const struct verb *verb = options->verb;
	if (options->operands.count < verb->least)
		return cli_usage(verb, "%s needs %s", verb->name, verb->arguments);
	if (options->operands.count <= verb->most)
		return 0;
	return cli_usage(verb, "%s takes no \"%s\"", verb->name, options->operands.items[verb->most]);
}

int options_parse(struct options *options, int argc, char **argv)
{
	*options = (struct options){.log_level = LOG_INFO,
				    .sync_timeout = 120,
				    .grace_period = 30,
				    .time_limit = 1,
				    .lease_duration = 15,
				    .renew_deadline = 10,
				    .retry_period = 2,
				    .memory_limit = (size_t)64 << 20};
	struct arguments arguments = {.next = argv + 1, .count = argc - 1};
	int code = argc > 0 ? read_arguments(options, &arguments) : 0;
	if (code || options->help || options->version || !options->verb)
		return code;
	return check_operands(options);
}

void options_fini(struct options *options)
{
	value_texts_fini(&options->operands);
	value_texts_fini(&options->handed_on);
	value_texts_fini(&options->settings);
	value_texts_fini(&options->manifests);
}

/* A verb without a host listens for what it serves itself. */
static const char *help_of(const struct flag *flag, unsigned groups)
{
	if (flag->field == FIELD(listen) && !(groups & FLAGS_HOST))
		return "of the server (127.0.0.1 and a free port)";
	return flag->help;
}

void options_print(FILE *out, unsigned groups)
{
	for (const struct flag *flag = flags; flag < flags + FLAG_COUNT; flag++) {
		char left[40], letter[5] = "";
		if (!flag->help || (flag->group && !(flag->group & groups)))
			continue;
		if (flag->letter)
			snprintf(letter, sizeof(letter), "-%c, ", flag->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, flag->name, flag->value ? " " : "",
			 flag->value ? flag->value : "");
		fprintf(out, "  %-26s %s\n", left, help_of(flag, groups));
	}
}
