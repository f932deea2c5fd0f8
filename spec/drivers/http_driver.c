/* http_driver: core/net on orders from stdin, one a line; events go to stdout, one JSON object a line.
 *
 * An order is a verb and key=value fields, separated by tabs:
 *   mux     name= max_streams= max_connections=
 *   tls     name= ca= cert= key= (paths of PEM files) server_name= insecure=1
 *   start   id= mux= url= method= tls= header= (repeatable) body= or body_size= stream=1 chunks=1 (an event for each)
 * limit= timeout= connect_timeout= proxy= unix= cancel_on=start|head|chunk|warning cancel  id= retire  mux= silence id=
 *   running mux=
 *   block   seconds=  the loop does nothing else
 *   quit    (end of input too) cancels what runs, frees all, says how many objects are left
 * Every order is answered by an event "ok" (or "bad") once it is carried out. Orders come in through loop_call from a
 * thread that reads stdin. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strmap.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/mux.h"
#include "stand_ins.h"

#define MAX_FIELDS 32

struct order {
	char *verb;
	char *keys[MAX_FIELDS], *values[MAX_FIELDS];
	int count;
};

struct request {
	char *id;
	struct http *http;
	char *cancel_on;
	bool chunks_told;
	size_t chunks, streamed, largest; /* of the chunks */
	unsigned long sum;                /* of all body bytes, so that a spec can tell that none changed */
	double started_at;
};

static struct loop *loop;
static struct strmap muxes, tlses, requests;
static double began_at;

static const char *field(const struct order *order, const char *key)
{
	for (int i = 0; i < order->count; i++)
		if (strcmp(order->keys[i], key) == 0)
			return order->values[i];
	return NULL;
}

static double number(const struct order *order, const char *key)
{
	const char *value = field(order, key);
	return value ? atof(value) : 0;
}

/* say("head", "s:id", id, "n:status", 200.0, NULL): an event with strings (s:) and numbers (n:). */
static void say(const char *event, ...)
{
	struct buf line;
	buf_init(&line, 0);
	buf_append_format(&line, "{\"event\":\"%s\",\"at\":%.6f", event, clock_now() - began_at);
	va_list fields;
	va_start(fields, event);
	for (const char *key; (key = va_arg(fields, const char *));) {
		buf_append_format(&line, ",\"%s\":", key + 2);
		if (*key == 'n') {
			buf_append_format(&line, "%.17g", va_arg(fields, double));
			continue;
		}
		const char *text = va_arg(fields, const char *);
		if (text)
			buf_append_json_string(&line, text, strlen(text));
		else
			buf_append_text(&line, "null");
	}
	va_end(fields);
	buf_append_text(&line, "}\n");
	for (size_t done = 0; done < line.length;) {
		ssize_t written = write(STDOUT_FILENO, line.data + done, line.length - done);
		if (written < 0)
			exit(1);
		done += (size_t)written;
	}
	buf_fini(&line);
}

static void forget(struct request *request)
{
	strmap_remove(&requests, request->id, strlen(request->id));
	alloc_free(request->id);
	alloc_free(request->cancel_on);
	alloc_free(request);
}

static void cancel(struct request *request)
{
	double before = clock_now();
	http_cancel(request->http);
	say("cancelled", "s:id", request->id, "n:took", clock_now() - before, NULL);
	forget(request);
}

static bool cancels_on(const struct request *request, const char *what)
{
	return request->cancel_on && strcmp(request->cancel_on, what) == 0;
}

static void on_head(void *data, const struct http_head *head)
{
	struct request *request = data;
	say("head", "s:id", request->id, "n:status", (double)head->status, "n:retry_after", head->retry_after,
	    "s:content_type", head->content_type, NULL);
	if (cancels_on(request, "head"))
		cancel(request);
}

static void add_up(struct request *request, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		request->sum = (request->sum * 31 + (unsigned char)bytes[i]) % 1000000007UL;
}

static void on_chunk(void *data, const char *bytes, size_t length)
{
	struct request *request = data;
	request->chunks++;
	request->streamed += length;
	request->largest = length > request->largest ? length : request->largest;
	add_up(request, bytes, length);
	if (request->chunks_told) {
		char *text = alloc_text(bytes, length);
		say("chunk", "s:id", request->id, "n:length", (double)length, "s:text", text, NULL);
		alloc_free(text);
	}
	if (cancels_on(request, "chunk"))
		cancel(request);
}

static void on_warning(void *data, const char *text)
{
	struct request *request = data;
	say("warning", "s:id", request->id, "s:text", text, NULL);
	if (cancels_on(request, "warning"))
		cancel(request);
}

static void on_done(void *data, const struct http_result *result)
{
	static const char *const failures[] = {"none",   "connect",   "untrusted", "timeout",
					       "broken", "too_large", "refused"};
	struct request *request = data;
	size_t length = result->body->length;
	add_up(request, result->body->data, length);
	char *text = alloc_text(result->body->data, length < 2000 ? length : 2000);
	say("done", "s:id", request->id, "s:failure", failures[result->failure], "n:status",
	    (double)result->head.status, "s:message", result->message, "n:sent", (double)result->sent, "n:length",
	    (double)length, "s:body", text, "n:chunks", (double)request->chunks, "n:streamed",
	    (double)request->streamed, "n:largest", (double)request->largest, "n:sum", (double)request->sum, "n:took",
	    clock_now() - request->started_at, NULL);
	alloc_free(text);
	forget(request);
}

static void do_mux(const struct order *order)
{
	struct mux_options options = {.max_streams = (int)number(order, "max_streams"),
				      .max_connections = (int)number(order, "max_connections")};
	if (!options.max_streams)
		options.max_streams = 100;
	const char *name = field(order, "name");
	if (!strmap_get(&muxes, name, strlen(name)))
		strmap_put(&muxes, name, strlen(name), mux_new(loop, &options));
}

static char *read_file(const char *path)
{
	FILE *file = path ? fopen(path, "r") : NULL;
	if (!file)
		return NULL;
	struct buf buf;
	buf_init(&buf, 0);
	char piece[4096];
	for (size_t length; (length = fread(piece, 1, sizeof(piece), file));)
		buf_append(&buf, piece, length);
	fclose(file);
	return buf_take(&buf);
}

static void do_tls(const struct order *order)
{
	char *ca = read_file(field(order, "ca")), *cert = read_file(field(order, "cert"));
	char *key = read_file(field(order, "key"));
	struct http_tls_options options = {.ca = ca,
					   .cert = cert,
					   .key = key,
					   .server_name = field(order, "server_name"),
					   .insecure = number(order, "insecure") != 0};
	const char *name = field(order, "name");
	http_tls_unref(strmap_put(&tlses, name, strlen(name), http_tls_new(&options)));
	alloc_free(ca);
	alloc_free(cert);
	alloc_free(key);
}

static struct mux *find_mux(const struct order *order)
{
	const char *name = field(order, "mux");
	return strmap_get(&muxes, name ? name : "m", strlen(name ? name : "m"));
}

static void fill_headers(const struct order *order, const char **headers)
{
	int count = 0;
	for (int i = 0; i < order->count; i++)
		if (strcmp(order->keys[i], "header") == 0)
			headers[count++] = order->values[i];
	headers[count] = NULL;
}

static char *make_body(const struct order *order, size_t *length)
{
	const char *text = field(order, "body");
	*length = text ? strlen(text) : (size_t)number(order, "body_size");
	if (text)
		return alloc_string(text);
	if (!*length)
		return NULL;
	char *body = alloc_zero(*length);
	for (size_t i = 0; i < *length; i++)
		body[i] = (char)('a' + i % 26);
	return body;
}

static struct request *request_new(const struct order *order, int number_in_row)
{
	struct request *request = alloc_zero(sizeof(*request));
	const char *id = field(order, "id");
	request->id = number_in_row ? alloc_format("%s%d", id, number_in_row) : alloc_string(id);
	request->cancel_on = alloc_string(field(order, "cancel_on"));
	request->chunks_told = number(order, "chunks") != 0;
	request->started_at = clock_now();
	strmap_put(&requests, request->id, strlen(request->id), request);
	return request;
}

static void start(const struct order *order, int number_in_row)
{
	static const struct http_events events = {on_head, on_chunk, on_warning, on_done};
	struct request *request = request_new(order, number_in_row);
	const char *headers[MAX_FIELDS + 1], *tls = field(order, "tls"), *method = field(order, "method");
	fill_headers(order, headers);
	size_t body_length;
	char *body = make_body(order, &body_length);
	struct http_request what = {.method = method ? method : "GET",
				    .url = field(order, "url"),
				    .headers = headers,
				    .body = body,
				    .body_length = body_length,
				    .tls = tls ? strmap_get(&tlses, tls, strlen(tls)) : NULL,
				    .proxy = field(order, "proxy"),
				    .unix_socket = field(order, "unix"),
				    .connect_timeout = number(order, "connect_timeout"),
				    .timeout = number(order, "timeout"),
				    .limit = (size_t)number(order, "limit"),
				    .stream = number(order, "stream") != 0};
	request->http = http_start(find_mux(order), &what, &events, request);
	alloc_free(body);
	if (cancels_on(request, "start"))
		cancel(request);
}

static void do_start(const struct order *order)
{
	int count = (int)number(order, "count");
	for (int i = 1; i <= count; i++)
		start(order, i);
	if (!count)
		start(order, 0);
}

static struct request *find_request(const struct order *order)
{
	const char *id = field(order, "id");
	return id ? strmap_get(&requests, id, strlen(id)) : NULL;
}

static void do_cancel(const struct order *order)
{
	struct request *request = find_request(order);
	if (request)
		cancel(request);
}

static void do_retire(const struct order *order)
{
	mux_retire(find_mux(order));
}

static void do_silence(const struct order *order)
{
	struct request *request = find_request(order);
	if (request)
		say("silence", "s:id", request->id, "n:seconds", http_silence(request->http), NULL);
}

static void do_running(const struct order *order)
{
	say("running", "n:count", (double)mux_running(find_mux(order)), NULL);
}

static void do_block(const struct order *order)
{
	usleep((useconds_t)(number(order, "seconds") * 1e6));
}

static void do_quit(const struct order *order)
{
	(void)order;
	size_t cursor = 0;
	void *value;
	while (strmap_next(&requests, &cursor, NULL, NULL, &value)) {
		cancel(value);
		cursor = 0;
	}
	loop_stop(loop);
}

static const struct {
	const char *verb;
	void (*run)(const struct order *order);
} verbs[] = {
    {"mux", do_mux},         {"tls", do_tls},         {"start", do_start}, {"cancel", do_cancel}, {"retire", do_retire},
    {"silence", do_silence}, {"running", do_running}, {"block", do_block}, {"quit", do_quit},
};

static void carry_out(void *data)
{
	const struct order *order = data;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].verb, order->verb) == 0) {
			verbs[i].run(order);
			say("ok", "s:verb", order->verb, NULL);
			return;
		}
	say("bad", "s:verb", order->verb, NULL);
}

static void parse(struct order *order, char *line)
{
	*order = (struct order){.verb = strsep(&line, "\t")};
	for (char *word; (word = strsep(&line, "\t")) && order->count < MAX_FIELDS;) {
		order->keys[order->count] = strsep(&word, "=");
		order->values[order->count++] = word ? word : "";
	}
}

static void *read_orders(void *data)
{
	(void)data;
	char *line = NULL;
	size_t room = 0;
	for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		struct order order;
		parse(&order, line);
		loop_call(loop, carry_out, &order, 3600);
		if (strcmp(order.verb, "quit") == 0)
			break;
	}
	if (feof(stdin))
		loop_call(loop, carry_out, &(struct order){.verb = "quit"}, 3600);
	free(line);
	return NULL;
}

static void free_all(void)
{
	size_t cursor = 0;
	void *value;
	while (strmap_next(&muxes, &cursor, NULL, NULL, &value))
		mux_free(value);
	cursor = 0;
	while (strmap_next(&tlses, &cursor, NULL, NULL, &value))
		http_tls_unref(value);
	strmap_fini(&muxes);
	strmap_fini(&tlses);
	strmap_fini(&requests);
	loop_free(loop);
}

int main(void)
{
	began_at = clock_now();
	struct err err;
	loop = loop_new(&err);
	if (!loop) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	strmap_init(&muxes);
	strmap_init(&tlses);
	strmap_init(&requests);
	pthread_t reader;
	pthread_create(&reader, NULL, read_orders, NULL);
	loop_run(loop);
	pthread_join(reader, NULL);
	double before = clock_now();
	free_all();
	say("end", "n:live", (double)alloc_live(stderr), "n:took", clock_now() - before, NULL);
	return 0;
}
