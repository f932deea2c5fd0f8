#include "kube/elector.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/request.h"
#include "kube/resource.h"

ALLOC_TYPE(elector_type, "elector");

#define MOST_BYTES ((size_t)1 << 20) /* of a Lease; servers store less than 2 MiB */
#define JITTER 1.2                   /* client-go's: so many retry periods are added at most, at random */
#define MOST_RELEASES 3
#define LEAST_TIME 0.001 /* seconds: 0 would be no limit */

/* What moves it on:
 *
 *   IDLE       elector_start: FOLLOWING
 *   FOLLOWING  a write of our record succeeded: LEADING
 *   LEADING    not renewed in time, or somebody else is in the Lease: OVER, on_lost
 *   RELEASING  (elector_stop) the Lease has nobody, or somebody else, or time is up: OVER, on_stopped
 *
 * Each try is a GET and, if that says so, a write; while LEADING the write comes first, with what was read last. */
enum state { IDLE, FOLLOWING, LEADING, RELEASING, OVER };

struct elector {
	struct cluster *cluster;
	struct elector_events events;
	void *data;
	char *namespace, *name, *label, *identity;
	double lease_duration, renew_deadline, retry_period;

	enum state state;
	struct request *request; /* of the present try */
	bool writing;            /* it is the write */
	bool has_read;           /* the present try began with a GET */
	struct loop_timer retry;
	struct loop_timer deadline; /* LEADING: when that ends; RELEASING: when that is given up */
	struct loop_job tell;       /* on_tell waits */
	unsigned releases;          /* writes that were to give it back */
	bool lost;
	char why[400];
	struct backoff failures; /* while FOLLOWING, for the log */

	/* Times are on clock_now's scale. */
	struct buf lease;  /* as seen last; empty: not known */
	struct buf record; /* its spec, to see that change */
	char *holder;      /* in it; "" for nobody */
	char *known;       /* the last one who was logged */
	double seen_at;    /* when record came to be as it is */
	double lasts;      /* seconds that it counts */
	double begun_at;   /* when the present request began */
	double renewed_at; /* when the last write that succeeded began */
	int64_t transitions;
};

static const struct resource leases = {.group = "coordination.k8s.io",
				       .version = "v1",
				       .api_version = "coordination.k8s.io/v1",
				       .kind = "Lease",
				       .plural = "leases",
				       .namespaced = true};

static bool is_ours(const struct elector *elector)
{
	return !strcmp(elector->holder, elector->identity);
}

/* --- the Lease --- */

static int not_a_lease(struct err *err)
{
	return err_set(err, "Connection", "the answer is no Lease");
}

static double positive_seconds(struct json_slice value, double fallback)
{
	int64_t seconds;
	return json_integer(value, &seconds) || seconds <= 0 ? fallback : (double)seconds;
}

static bool has_changed(const struct elector *elector, struct json_slice spec)
{
	return elector->record.length != spec.length || memcmp(elector->record.data, spec.data, spec.length) != 0;
}

static void tell_holder(struct elector *elector)
{
	if (!*elector->holder || !strcmp(elector->holder, elector->known))
		return;
	alloc_free(elector->known);
	elector->known = alloc_string(elector->holder);
	if (!is_ours(elector))
		log_info(LOG_FIELDS({"lease", elector->label}, {"leader", elector->holder}), "another process leads");
}

static void take_record(struct elector *elector, struct json_slice spec)
{
	if (has_changed(elector, spec)) {
		elector->seen_at = clock_now();
		buf_reset(&elector->record);
		buf_append(&elector->record, spec.data, spec.length);
	}
	char *holder = json_string_copy(json_get(spec, "holderIdentity"));
	alloc_free(elector->holder);
	elector->holder = holder ? holder : alloc_string("");
	elector->lasts = positive_seconds(json_get(spec, "leaseDurationSeconds"), elector->lease_duration);
	if (json_integer(json_get(spec, "leaseTransitions"), &elector->transitions) || elector->transitions < 0)
		elector->transitions = 0;
	tell_holder(elector);
}

/* Without a resourceVersion a write of it would overwrite whatever is there. */
static int take_lease(struct elector *elector, struct json_slice lease, struct err *err)
{
	struct json_slice version = json_get(json_get(lease, "metadata"), "resourceVersion");
	if (json_type(version) != JSON_STRING || version.length <= 2)
		return not_a_lease(err);
	struct json_slice spec = json_get(lease, "spec");
	buf_reset(&elector->lease);
	buf_append(&elector->lease, lease.data, lease.length);
	take_record(elector, json_type(spec) == JSON_OBJECT ? spec : (struct json_slice){"{}", 2});
	return 0;
}

static struct json_slice known_lease(const struct elector *elector)
{
	return (struct json_slice){elector->lease.length ? elector->lease.data : NULL, elector->lease.length};
}

static void append_quoted(struct buf *out, const char *name, const char *value)
{
	buf_append_format(out, "\"%s\":", name);
	buf_append_json_string(out, value, strlen(value));
	buf_append_char(out, ',');
}

/* The members of an object that are none of these, each with a comma behind it. */
static void append_others(struct buf *out, struct json_slice object, const char *const *names)
{
	struct json_iter iter = json_iterate(object);
	while (json_next(&iter)) {
		const char *const *name = names;
		while (*name && !json_string_equals(iter.key, *name))
			name++;
		if (*name)
			continue;
		buf_append(out, iter.key.data, iter.key.length);
		buf_append_char(out, ':');
		buf_append(out, iter.value.data, iter.value.length);
		buf_append_char(out, ',');
	}
}

static void append_new(const struct elector *elector, struct buf *out)
{
	append_quoted(out, "apiVersion", leases.api_version);
	append_quoted(out, "kind", leases.kind);
	buf_append_text(out, "\"metadata\":{");
	append_quoted(out, "namespace", elector->namespace);
	append_quoted(out, "name", elector->name);
	out->data[out->length - 1] = '}';
	buf_append_char(out, ',');
}

/* As client-go has it: who renews keeps acquireTime and leaseTransitions; who takes over sets both; who gives back
 * leaves a lease of one second that nobody holds. */
static void append_record(const struct elector *elector, struct json_slice spec, struct buf *out)
{
	char now[40];
	bool release = elector->state == RELEASING, keeps = is_ours(elector);
	struct json_slice acquired = json_get(spec, "acquireTime");
	int64_t transitions = elector->transitions + (!keeps && spec.data && elector->transitions < INT32_MAX);
	clock_format_micro(clock_wall(), now, sizeof(now));
	append_quoted(out, "holderIdentity", release ? "" : elector->identity);
	append_quoted(out, "renewTime", now);
	if (keeps && !release && json_type(acquired) == JSON_STRING)
		buf_append_format(out, "\"acquireTime\":%.*s,", (int)acquired.length, acquired.data);
	else
		append_quoted(out, "acquireTime", now);
	buf_append_format(out, "\"leaseDurationSeconds\":%.0f,\"leaseTransitions\":%lld",
			  release ? 1 : elector->lease_duration, (long long)transitions);
}

static void append_lease(const struct elector *elector, struct buf *out)
{
	static const char *const spec_alone[] = {"spec", NULL};
	static const char *const ours[] = {"holderIdentity",       "renewTime",        "acquireTime",
					   "leaseDurationSeconds", "leaseTransitions", NULL};
	struct json_slice lease = known_lease(elector), spec = json_get(lease, "spec");
	buf_append_char(out, '{');
	if (lease.data)
		append_others(out, lease, spec_alone);
	else
		append_new(elector, out);
	buf_append_text(out, "\"spec\":{");
	append_others(out, spec, ours);
	append_record(elector, spec, out);
	buf_append_text(out, "}}");
}

/* --- the ends --- */

static void halt(struct elector *elector)
{
	struct loop *loop = elector->cluster->loop;
	loop_timer_stop(loop, &elector->retry);
	loop_timer_stop(loop, &elector->deadline);
	request_cancel(elector->request);
	elector->request = NULL;
}

static void end(struct elector *elector)
{
	halt(elector);
	elector->state = OVER;
	loop_post_first(elector->cluster->loop, &elector->tell);
}

/* The owner is told ahead of all else, so that what it cancels is neither called nor hears of the fence, which itself
 * comes before any request ends. This may be in the wake of the loop. */
static void lose(struct elector *elector)
{
	elector->lost = true;
	loop_post_first(elector->cluster->loop, &elector->tell);
	request_fence(elector->cluster);
	end(elector);
}

static void on_tell(void *data)
{
	struct elector *elector = data;
	if (elector->lost)
		elector->events.on_lost(elector->data, elector->why);
	else
		elector->events.on_stopped(elector->data);
}

static double leads_until(const struct elector *elector)
{
	return elector->renewed_at + elector->renew_deadline;
}

bool elector_is_leading(const struct elector *elector)
{
	return elector->state == LEADING && clock_now() < leads_until(elector);
}

static void look_at_clock(void *data)
{
	struct elector *elector = data;
	if (elector->state != LEADING || elector_is_leading(elector))
		return;
	snprintf(elector->why, sizeof(elector->why), "not renewed within %g s", elector->renew_deadline);
	lose(elector);
}

static void on_deadline(void *data)
{
	struct elector *elector = data;
	look_at_clock(elector);
	if (elector->state != RELEASING)
		return;
	log_warn(LOG_FIELDS({"lease", elector->label}), "the lease could not be given back in time");
	end(elector);
}

/* --- tries --- */

static void wait_for_next(struct elector *elector)
{
	double more = elector->state == FOLLOWING ? JITTER * backoff_random() : 0;
	loop_timer_start(elector->cluster->loop, &elector->retry, elector->retry_period * (1 + more));
}

static void log_failure(struct elector *elector, const struct err *err)
{
	const struct log_field *fields = LOG_FIELDS({"lease", elector->label}, {"error", err->message});
	if (elector->state == LEADING) {
		log_warn(fields, "the lease was not renewed; %.1f s are left", leads_until(elector) - clock_now());
		return;
	}
	backoff_told(&elector->failures, elector->retry_period);
	if (backoff_speaks(&elector->failures))
		log_warn(fields, "cannot take part in the election");
}

static void lead(struct elector *elector)
{
	log_info(LOG_FIELDS({"lease", elector->label}, {"identity", elector->identity}), "became the leader");
	elector->events.on_leading(elector->data);
}

/* An answer that came when its time was over says nothing of who leads now. */
static void written(struct elector *elector)
{
	double left = elector->begun_at + elector->renew_deadline - clock_now();
	bool first = elector->state == FOLLOWING;
	if (left <= 0) {
		wait_for_next(elector);
		return;
	}
	elector->state = LEADING;
	elector->renewed_at = elector->begun_at;
	loop_timer_start(elector->cluster->loop, &elector->deadline, left);
	wait_for_next(elector);
	if (first)
		lead(elector);
}

static void read_lease(struct elector *elector);
static void write_lease(struct elector *elector);

static void released(struct elector *elector)
{
	if (!*elector->holder)
		log_info(LOG_FIELDS({"lease", elector->label}), "gave the lease back");
	end(elector);
}

/* Nobody else may take it while its record is new to us and says that it counts. */
static bool is_taken(const struct elector *elector)
{
	return *elector->holder && !is_ours(elector) && clock_now() < elector->seen_at + elector->lasts;
}

static void decide(struct elector *elector)
{
	if (elector->state == LEADING && *elector->holder && !is_ours(elector)) {
		snprintf(elector->why, sizeof(elector->why), "%.300s has it", elector->holder);
		lose(elector);
	} else if (elector->state == RELEASING && (!is_ours(elector) || elector->releases++ == MOST_RELEASES)) {
		released(elector);
	} else if (is_taken(elector)) {
		wait_for_next(elector);
	} else {
		write_lease(elector);
	}
}

/* A write that lost against another one is no fault, and a Lease that is gone is made again by the next who asks. */
static void failed(struct elector *elector, const struct err *err)
{
	bool stale = elector->writing && err->code == 409, gone = !elector->writing && err->code == 404;
	buf_reset(&elector->lease);
	if (gone && elector->state != RELEASING) {
		write_lease(elector);
	} else if (stale && (!elector->has_read || elector->state == RELEASING)) {
		read_lease(elector);
	} else if (elector->state == RELEASING) {
		if (!gone)
			log_warn(LOG_FIELDS({"lease", elector->label}, {"error", err->message}),
				 "the lease was not given back");
		end(elector);
	} else {
		if (!stale)
			log_failure(elector, err);
		wait_for_next(elector);
	}
}

static void on_done(void *data, const struct err *err, struct json_slice body)
{
	struct elector *elector = data;
	struct err bad;
	elector->request = NULL;
	bool taking = elector->writing && elector->state != RELEASING;
	if (!err && take_lease(elector, body, &bad))
		err = &bad;
	if (!err && taking && !is_ours(elector) && err_set(&bad, "", "the server stored another holder"))
		err = &bad;
	if (err)
		failed(elector, err);
	else if (taking)
		written(elector);
	else
		decide(elector);
}

/* A leader's try ends with its lease at the latest. */
static double time_for_request(const struct elector *elector)
{
	double half = elector->renew_deadline / 2, left = leads_until(elector) - elector->begun_at;
	return elector->state == LEADING ? fmax(fmin(half, left), LEAST_TIME) : half;
}

/* name: NULL for a new one. */
static void send(struct elector *elector, const char *method, const char *name, const struct buf *body)
{
	static const struct request_events events = {.on_done = on_done};
	struct buf path;
	buf_init(&path, 0);
	resource_path(&leases, elector->namespace, name, NULL, &path);
	struct request_options options = {.method = method,
					  .path = buf_text(&path),
					  .body = body ? body->data : NULL,
					  .body_length = body ? body->length : 0,
					  .limit = MOST_BYTES,
					  .urgent = true};
	elector->writing = body != NULL;
	elector->begun_at = clock_now();
	options.timeout = time_for_request(elector);
	elector->request = request_start(elector->cluster, &options, &events, elector);
	buf_fini(&path);
}

static void read_lease(struct elector *elector)
{
	elector->has_read = true;
	send(elector, "GET", elector->name, NULL);
}

/* The last look at the clock before it begins. */
static void write_lease(struct elector *elector)
{
	bool known = elector->lease.length > 0;
	struct buf body;
	look_at_clock(elector);
	if (elector->state == OVER)
		return;
	buf_init(&body, 0);
	append_lease(elector, &body);
	send(elector, known ? "PUT" : "POST", known ? elector->name : NULL, &body);
	buf_fini(&body);
}

static void look_and_write(struct elector *elector)
{
	if (elector->lease.length)
		decide(elector);
	else
		read_lease(elector);
}

static void try_now(struct elector *elector)
{
	elector->has_read = false;
	if (elector->state == LEADING)
		look_and_write(elector);
	else
		read_lease(elector);
}

static void on_retry(void *data)
{
	try_now(data);
}

/* --- from outside --- */

/* A random UUID (version 4) behind the host's name, so that no two runs of any process share one. */
static char *make_identity(void)
{
	char host[256] = "";
	unsigned char r[16];
	if (gethostname(host, sizeof(host) - 1) || !*host)
		snprintf(host, sizeof(host), "localhost");
	for (size_t got = 0; got < sizeof(r);) {
		ssize_t more = getrandom(r + got, sizeof(r) - got, 0);
		got += more > 0 ? (size_t)more : 0;
	}
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	return alloc_format("%s_%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", host, r[0], r[1],
			    r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14], r[15]);
}

struct elector *elector_new(struct cluster *cluster, const struct elector_options *options,
			    const struct elector_events *events, void *data)
{
	struct elector *elector = alloc_object(&elector_type, sizeof(*elector));
	elector->cluster = cluster;
	elector->events = *events;
	elector->data = data;
	elector->namespace = alloc_string(options->namespace);
	elector->name = alloc_string(options->name);
	elector->label = alloc_format("%s/%s", options->namespace, options->name);
	elector->identity = make_identity();
	elector->lease_duration = options->lease_duration;
	elector->renew_deadline = options->renew_deadline;
	elector->retry_period = options->retry_period;
	elector->holder = alloc_string("");
	elector->known = alloc_string("");
	buf_init(&elector->lease, 0);
	buf_init(&elector->record, 0);
	loop_timer_init(&elector->retry, on_retry, elector);
	loop_timer_init(&elector->deadline, on_deadline, elector);
	loop_job_init(&elector->tell, on_tell, elector);
	cluster->elector = elector;
	loop_on_wake(cluster->loop, look_at_clock, elector);
	return elector;
}

void elector_free(struct elector *elector)
{
	if (!elector)
		return;
	halt(elector);
	loop_job_cancel(&elector->tell);
	loop_on_wake(elector->cluster->loop, NULL, NULL);
	elector->cluster->elector = NULL;
	char *texts[] = {elector->namespace, elector->name,   elector->label,
			 elector->identity,  elector->holder, elector->known};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		alloc_free(texts[i]);
	buf_fini(&elector->lease);
	buf_fini(&elector->record);
	alloc_object_free(&elector_type, elector);
}

void elector_start(struct elector *elector)
{
	if (elector->state != IDLE)
		return;
	elector->state = FOLLOWING;
	try_now(elector);
}

/* A write under way may make us the holder yet, so its end is waited for. */
void elector_stop(struct elector *elector)
{
	look_at_clock(elector);
	bool writing = elector->request && elector->writing;
	if (elector->state == RELEASING || elector->state == OVER)
		return;
	if (elector->state == IDLE || (elector->state == FOLLOWING && !writing)) {
		end(elector);
		return;
	}
	elector->state = RELEASING;
	loop_timer_stop(elector->cluster->loop, &elector->retry);
	loop_timer_start(elector->cluster->loop, &elector->deadline, elector->renew_deadline / 2);
	if (!elector->request)
		look_and_write(elector);
}

const char *elector_lease(const struct elector *elector)
{
	return elector->label;
}

const char *elector_identity(const struct elector *elector)
{
	return elector->identity;
}

const char *elector_holder(const struct elector *elector)
{
	return elector->holder;
}
