#include "script/leadership.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "script/host_private.h"
#include "script/script.h"

ALLOC_TYPE(leadership_type, "leadership");

struct leadership {
	struct host *host;
	struct elector *elector;
	struct metric_series *status; /* 1 while it leads */
};

/* client-go's, by the Lease's name. */
static const struct metric_definition table[] = {{.type = METRIC_GAUGE,
						  .name = "leader_election_master_status",
						  .help = "Whether this process leads: 1, or 0 while another one may.",
						  .labels = {"name"}}};

static void on_leading(void *data)
{
	const struct leadership *leadership = data;
	metric_set(leadership->status, 1);
	LIST_EACH (host_scripts(leadership->host), node)
		script_leading(LIST_ENTRY(node, struct script, node));
}

static void on_lost(void *data, const char *why)
{
	const struct leadership *leadership = data;
	metric_set(leadership->status, 0);
	log_error(LOG_FIELDS({"lease", elector_lease(leadership->elector)}),
		  "lost the lease: %s; all that runs is cancelled", why);
	host_lost_leadership(leadership->host);
}

static void on_stopped(void *data)
{
	const struct leadership *leadership = data;
	metric_set(leadership->status, 0);
	host_left_election(leadership->host);
}

struct leadership *leadership_new(struct host *host, const struct elector_options *options)
{
	static const struct elector_events events = {on_leading, on_lost, on_stopped};
	struct leadership *leadership = alloc_object(&leadership_type, sizeof(*leadership));
	struct metric_family *family;
	leadership->host = host;
	leadership->elector = elector_new(host_cluster(host), options, &events, leadership);
	metric_define(host_metrics(host), table, 1, &family);
	leadership->status = metric_keep(family, &options->name);
	metric_set(leadership->status, 0);
	return leadership;
}

void leadership_free(struct leadership *leadership)
{
	if (!leadership)
		return;
	elector_free(leadership->elector);
	alloc_object_free(&leadership_type, leadership);
}

static bool has_work(const struct leadership *leadership)
{
	LIST_EACH (host_scripts(leadership->host), node)
		if (script_has_leader(LIST_ENTRY(node, struct script, node)))
			return true;
	return false;
}

void leadership_start(struct leadership *leadership)
{
	if (!has_work(leadership))
		log_warn(NULL, "--leader-elect, but nothing is marked leader = true: all of it runs on every host");
	elector_start(leadership->elector);
}

void leadership_leave(struct leadership *leadership)
{
	elector_stop(leadership->elector);
}

bool leadership_holds(const struct leadership *leadership)
{
	return elector_is_leading(leadership->elector);
}

static void append_member(struct buf *out, const char *name, const char *value)
{
	buf_append_format(out, "\"%s\":", name);
	buf_append_json_string(out, value, strlen(value));
	buf_append_char(out, ',');
}

void leadership_describe(const struct leadership *leadership, struct buf *out)
{
	const struct elector *elector = leadership->elector;
	buf_append_char(out, '{');
	append_member(out, "lease", elector_lease(elector));
	append_member(out, "identity", elector_identity(elector));
	append_member(out, "leader", elector_holder(elector));
	buf_append_format(out, "\"leading\":%s}", elector_is_leading(elector) ? "true" : "false");
}
