/* proxy HOST PORT: a TCP proxy before HOST:PORT that misbehaves on orders. Without a fault no byte is lost or changed.
 *
 * It listens on a free port of 127.0.0.1, {"event":"listening","port":N}, until the end of input or "quit". Orders come
 * from stdin, one a line, fields parted by tabs; each is answered by {"event":"ok"}, "bad" or what it asks for:
 *
 * - silence after=: so many bytes more; then what comes is acknowledged and dropped, an end included, for good
 * - slow rate=: bytes a second
 * - cut after=: so many bytes more, then the end of the stream to both sides; what still comes is dropped
 * - reset after=: at most so many bytes more, then a TCP reset to both sides
 * - heal: takes back the slowness, and what waits for its byte
 * - refuse, accept: connections to come are refused, or no longer
 * - counts: of all connections so far, bytes passed on and lost, and how often each fault has struck
 * - connections: the same of each open one
 *
 * Fields of the first five: scope=open (the default, the connections there are), new (those to come), all (both), next
 * (the next one to come alone), or a connection's number, from 1 in the order in which they came; direction=up (from
 * the client to the server) or down; both without it. One that went silent stays until its client gives up. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"

#define ROOM 65536
#define HELD_BACK_MS 10
#define MAX_FIELDS 8

enum direction { UP, DOWN }; /* a stream's direction is the number of the socket it comes from */
enum { CLIENT, SERVER };
enum ending { NEVER, SILENCE, CUT, RESET };

struct fault {
	bool silent;
	double rate; /* 0: as fast as it goes */
	enum ending ending;
	long long after; /* bytes until then */
};

/* Invariant: what has been taken and not yet passed on is bytes[first..last). */
struct stream {
	char bytes[ROOM];
	size_t first, last;
	bool ended, told; /* its source has ended; its destination knows */
	struct fault fault;
	double budget, filled_at; /* of a slow one: bytes that may pass */
	long long passed, lost;
	bool counted_silent, counted_slow;
};

struct connection {
	struct list node; /* in connections */
	long number;
	int fds[2]; /* -1 once closed */
	bool cut;   /* both sides have been told the end; what still comes is dropped */
	struct stream streams[2];
	short ready[2]; /* what poll said of each socket */
};

static struct {
	long connections, open, cut, reset, silence, slow;
	long long passed[2], lost[2];
} counts;

static struct list connections;
static struct fault new_fault[2], next_fault[2];
static bool has_next;
static struct addrinfo *target;
static struct sockaddr_in address; /* of the listener */
static int listener = -1,
	   reserve; /* reserve: bound and never listening, keeps the port while connections are refused */
static bool quitting;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- sockets */

static int tcp_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

static int bound_socket(void)
{
	int fd = tcp_socket(AF_INET);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("bind");
	return fd;
}

static void open_listener(void)
{
	if (listener >= 0)
		return;
	listener = bound_socket();
	if (listen(listener, SOMAXCONN) < 0)
		die("listen");
}

static void close_listener(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
}

static void take_port(void)
{
	socklen_t length = sizeof(address);
	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	reserve = bound_socket();
	getsockname(reserve, (struct sockaddr *)&address, &length);
	open_listener();
}

/* ---- a connection's life */

static void drop_connection(struct connection *connection, bool with_reset)
{
	for (int side = CLIENT; side <= SERVER; side++) {
		if (connection->fds[side] < 0)
			continue;
		if (with_reset)
			setsockopt(connection->fds[side], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
				   sizeof(struct linger));
		close(connection->fds[side]);
	}
	counts.open--;
	list_remove(&connection->node);
	alloc_free(connection);
}

static bool is_silent(const struct connection *connection, enum direction direction)
{
	return connection->cut || connection->streams[direction].fault.silent;
}

/* The client of a silent connection does not hear of it. */
static void lose_side(struct connection *connection, int side)
{
	if (side == CLIENT || !is_silent(connection, DOWN)) {
		drop_connection(connection, true);
		return;
	}
	close(connection->fds[SERVER]);
	connection->fds[SERVER] = -1;
	connection->streams[UP].fault.silent = true;
	connection->streams[DOWN].ended = true;
}

static void accept_one(void)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client < 0)
		return;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	struct connection *connection = alloc_zero(sizeof(*connection));
	connection->number = ++counts.connections;
	counts.open++;
	connection->fds[CLIENT] = client;
	connection->fds[SERVER] = tcp_socket(target->ai_family);
	connect(connection->fds[SERVER], target->ai_addr, target->ai_addrlen); /* a failure shows when it is read */
	for (int i = UP; i <= DOWN; i++) {
		connection->streams[i].fault = has_next ? next_fault[i] : new_fault[i];
		connection->streams[i].filled_at = clock_now();
	}
	has_next = false;
	list_add_tail(&connections, &connection->node);
}

/* ---- bytes */

static bool has_room(const struct stream *stream)
{
	return !stream->ended && stream->last < ROOM;
}

/* How many of the waiting bytes may pass now. */
static size_t allowed(const struct stream *stream)
{
	size_t size = stream->last - stream->first;
	if (stream->fault.ending && (long long)size > stream->fault.after)
		size = (size_t)stream->fault.after;
	if (stream->fault.rate > 0 && (double)size > stream->budget)
		size = (size_t)stream->budget;
	return size;
}

static void fill_budget(struct stream *stream)
{
	double now = clock_now(), most = stream->fault.rate * 2 * HELD_BACK_MS / 1000 + 1;
	stream->budget += (now - stream->filled_at) * stream->fault.rate;
	if (stream->budget > most)
		stream->budget = most;
	stream->filled_at = now;
}

static bool is_held_back(const struct stream *stream)
{
	return stream->fault.rate > 0 && stream->first < stream->last && allowed(stream) == 0;
}

static void drop_bytes(struct connection *connection, enum direction direction)
{
	struct stream *stream = &connection->streams[direction];
	size_t size = stream->last - stream->first;
	stream->first = stream->last = 0;
	stream->lost += (long long)size;
	counts.lost[direction] += (long long)size;
	if (size && stream->fault.silent && !connection->cut && !stream->counted_silent) {
		stream->counted_silent = true;
		counts.silence++;
	}
}

static void cut_connection(struct connection *connection)
{
	counts.cut++;
	connection->cut = true;
	drop_bytes(connection, UP);
	drop_bytes(connection, DOWN);
	for (int side = CLIENT; side <= SERVER; side++)
		if (connection->fds[side] >= 0)
			shutdown(connection->fds[side], SHUT_WR);
}

/* False when the source is no more. */
static bool take_bytes(struct connection *connection, enum direction direction)
{
	struct stream *stream = &connection->streams[direction];
	while (has_room(stream)) {
		ssize_t length = recv(connection->fds[direction], stream->bytes + stream->last, ROOM - stream->last, 0);
		if (length < 0)
			return errno == EAGAIN || errno == EINTR;
		stream->ended = length == 0;
		stream->last += (size_t)length;
		if (is_silent(connection, direction)) {
			drop_bytes(connection, direction);
			return true;
		}
	}
	return true;
}

/* False when the destination is no more. */
static bool pass_bytes(struct connection *connection, enum direction direction)
{
	struct stream *stream = &connection->streams[direction];
	for (size_t size; (size = allowed(stream)) > 0;) {
		ssize_t length = send(connection->fds[!direction], stream->bytes + stream->first, size, MSG_NOSIGNAL);
		if (length < 0)
			return errno == EAGAIN || errno == EINTR;
		stream->first += (size_t)length;
		stream->passed += length;
		counts.passed[direction] += length;
		stream->fault.after -= length;
		stream->budget -= stream->fault.rate > 0 ? (double)length : 0;
		if (stream->first == stream->last)
			stream->first = stream->last = 0;
	}
	if (is_held_back(stream) && !stream->counted_slow) {
		stream->counted_slow = true;
		counts.slow++;
	}
	if (stream->ended && !stream->told && stream->first == stream->last) {
		shutdown(connection->fds[!direction], SHUT_WR);
		stream->told = true;
	}
	return true;
}

/* False when the connection is gone. */
static bool end_as_ordered(struct connection *connection, enum direction direction)
{
	struct stream *stream = &connection->streams[direction];
	enum ending ending = stream->fault.after > 0 ? NEVER : stream->fault.ending;
	if (ending == RESET) {
		counts.reset++;
		drop_connection(connection, true);
		return false;
	}
	if (ending == SILENCE && !stream->fault.silent) {
		stream->fault.silent = true;
		drop_bytes(connection, direction);
	}
	if (ending == CUT && !connection->cut)
		cut_connection(connection);
	return true;
}

/* False when the connection is gone. */
static bool move(struct connection *connection, enum direction direction)
{
	struct stream *stream = &connection->streams[direction];
	if (connection->fds[direction] >= 0 && connection->ready[direction] && !take_bytes(connection, direction)) {
		lose_side(connection, (int)direction);
		return false;
	}
	if (is_silent(connection, direction)) {
		drop_bytes(connection, direction);
		return end_as_ordered(connection, direction);
	}
	fill_budget(stream);
	if (!pass_bytes(connection, direction)) {
		lose_side(connection, (int)!direction);
		return false;
	}
	return end_as_ordered(connection, direction);
}

static bool is_over(const struct connection *connection)
{
	const struct stream *up = &connection->streams[UP], *down = &connection->streams[DOWN];
	if (up->ended && up->fault.silent && !connection->cut)
		return true;
	return up->ended && down->ended && up->first == up->last && down->first == down->last;
}

static void move_both(struct connection *connection)
{
	if (move(connection, UP) && move(connection, DOWN) && is_over(connection))
		drop_connection(connection, false);
}

/* ---- orders */

struct order {
	char *verb;
	char *keys[MAX_FIELDS], *values[MAX_FIELDS];
	int count;
};

static const char *field(const struct order *order, const char *key, const char *otherwise)
{
	for (int i = 0; i < order->count; i++)
		if (!strcmp(order->keys[i], key))
			return order->values[i];
	return otherwise;
}

static bool change_fault(const struct order *order, struct fault *fault)
{
	static const char *const endings[] = {[SILENCE] = "silence", [CUT] = "cut", [RESET] = "reset"};
	if (!strcmp(order->verb, "slow")) {
		fault->rate = atof(field(order, "rate", "0"));
		return fault->rate > 0;
	}
	for (int i = SILENCE; i <= RESET; i++) {
		if (strcmp(order->verb, endings[i]) != 0)
			continue;
		fault->ending = i;
		fault->after = atoll(field(order, "after", "0"));
		return true;
	}
	fault->rate = 0;
	fault->ending = NEVER;
	return true;
}

static const char *const direction_names[] = {[UP] = "up", [DOWN] = "down"};

static bool has_direction(const struct order *order, enum direction direction)
{
	return !strcmp(field(order, "direction", direction_names[direction]), direction_names[direction]);
}

static bool change_open(const struct order *order, long number)
{
	bool found = false;
	LIST_EACH (&connections, node) {
		struct connection *connection = LIST_ENTRY(node, struct connection, node);
		if (number && connection->number != number)
			continue;
		found = true;
		for (int i = UP; i <= DOWN; i++)
			if (has_direction(order, i) && !change_fault(order, &connection->streams[i].fault))
				return false;
		connection->ready[UP] = connection->ready[DOWN] = 0;
		move_both(connection); /* what is to happen at once needs no byte to come */
	}
	return found || !number;
}

static bool change_coming(const struct order *order, struct fault *faults)
{
	bool is_heal = !strcmp(order->verb, "heal");
	has_next = has_next && (!is_heal || faults == next_fault);
	for (int i = UP; i <= DOWN; i++) {
		if (has_direction(order, i) && is_heal)
			faults[i] = (struct fault){.rate = 0};
		else if (has_direction(order, i) && !change_fault(order, &faults[i]))
			return false;
	}
	return true;
}

static bool change_next(const struct order *order)
{
	if (!has_next)
		memcpy(next_fault, new_fault, sizeof(new_fault));
	has_next = true;
	return change_coming(order, next_fault);
}

static bool do_fault(const struct order *order)
{
	const char *scope = field(order, "scope", "open");
	if (!has_direction(order, UP) && !has_direction(order, DOWN))
		return false;
	if (!strcmp(scope, "next"))
		return change_next(order);
	if (!strcmp(scope, "new"))
		return change_coming(order, new_fault);
	if (!strcmp(scope, "all"))
		return change_coming(order, new_fault) && change_open(order, 0);
	if (!strcmp(scope, "open"))
		return change_open(order, 0);
	return atol(scope) > 0 && change_open(order, atol(scope));
}

static bool do_refuse(const struct order *order)
{
	(void)order;
	close_listener();
	return true;
}

static bool do_accept(const struct order *order)
{
	(void)order;
	open_listener();
	return true;
}

static bool do_quit(const struct order *order)
{
	(void)order;
	quitting = true;
	return true;
}

static void say(const char *event)
{
	printf("{\"event\":\"%s\"}\n", event);
}

static bool do_counts(const struct order *order)
{
	(void)order;
	printf("{\"event\":\"counts\",\"connections\":%ld,\"open\":%ld,\"up\":%lld,\"down\":%lld,\"lost_up\":%lld,"
	       "\"lost_down\":%lld,\"fired\":{\"cut\":%ld,\"reset\":%ld,\"silence\":%ld,\"slow\":%ld}}\n",
	       counts.connections, counts.open, counts.passed[UP], counts.passed[DOWN], counts.lost[UP],
	       counts.lost[DOWN], counts.cut, counts.reset, counts.silence, counts.slow);
	return true;
}

static bool do_connections(const struct order *order)
{
	(void)order;
	const char *comma = "";
	printf("{\"event\":\"connections\",\"list\":[");
	LIST_EACH (&connections, node) {
		const struct connection *connection = LIST_ENTRY(node, struct connection, node);
		const struct stream *up = &connection->streams[UP], *down = &connection->streams[DOWN];
		printf("%s{\"number\":%ld,\"up\":%lld,\"down\":%lld,\"lost_up\":%lld,\"lost_down\":%lld}", comma,
		       connection->number, up->passed, down->passed, up->lost, down->lost);
		comma = ",";
	}
	printf("]}\n");
	return true;
}

static const struct {
	const char *verb;
	bool (*run)(const struct order *order);
	bool answers; /* by itself */
} verbs[] = {
    {"silence", do_fault, false}, {"slow", do_fault, false},   {"cut", do_fault, false},
    {"reset", do_fault, false},   {"heal", do_fault, false},   {"refuse", do_refuse, false},
    {"accept", do_accept, false}, {"counts", do_counts, true}, {"connections", do_connections, true},
    {"quit", do_quit, false},
};

static void carry_out(const struct order *order)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (strcmp(verbs[i].verb, order->verb) != 0)
			continue;
		bool done = verbs[i].run(order);
		if (!done || !verbs[i].answers)
			say(done ? "ok" : "bad");
		return;
	}
	say("bad");
}

static void parse(struct order *order, char *text)
{
	*order = (struct order){.verb = strsep(&text, "\t")};
	for (char *word; (word = strsep(&text, "\t")) && order->count < MAX_FIELDS;) {
		order->keys[order->count] = strsep(&word, "=");
		order->values[order->count++] = word ? word : "";
	}
}

static struct buf input;

static void read_orders(void)
{
	char bytes[4096], *newline;
	ssize_t length = read(STDIN_FILENO, bytes, sizeof(bytes));
	quitting = length <= 0;
	if (quitting)
		return;
	buf_append(&input, bytes, (size_t)length);
	while ((newline = memchr(input.data, '\n', input.length))) {
		struct order order;
		*newline = '\0';
		size_t line_length = (size_t)(newline - input.data) + 1;
		parse(&order, input.data);
		carry_out(&order);
		buf_consume(&input, line_length);
	}
	fflush(stdout);
}

/* ---- the loop */

/* Those of a socket: to read while its own stream has room, to write while the other may pass something. */
static struct pollfd interest(const struct connection *connection, int side)
{
	const struct stream *in = &connection->streams[side], *out = &connection->streams[!side];
	bool reads = has_room(in), writes = !is_silent(connection, (enum direction) !side) && allowed(out) > 0;
	short events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
	return (struct pollfd){.fd = events ? connection->fds[side] : -1, .events = events};
}

static struct pollfd *polled;
static size_t polled_room;

static size_t fill_polled(int *timeout)
{
	size_t count = 2 + 2 * (size_t)counts.open, at = 2;
	if (count > polled_room) {
		polled_room = 2 * count;
		polled = alloc_resize(polled, polled_room * sizeof(*polled));
	}
	polled[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	polled[1] = (struct pollfd){.fd = listener, .events = POLLIN};
	*timeout = -1;
	LIST_EACH (&connections, node) {
		struct connection *connection = LIST_ENTRY(node, struct connection, node);
		polled[at++] = interest(connection, CLIENT);
		polled[at++] = interest(connection, SERVER);
		if (is_held_back(&connection->streams[UP]) || is_held_back(&connection->streams[DOWN]))
			*timeout = HELD_BACK_MS;
	}
	return count;
}

static void turn(void)
{
	int timeout;
	size_t count = fill_polled(&timeout), at = 2;
	if (poll(polled, count, timeout) < 0 && errno != EINTR)
		die("poll");
	LIST_EACH (&connections, node) {
		struct connection *connection = LIST_ENTRY(node, struct connection, node);
		connection->ready[CLIENT] = polled[at++].revents;
		connection->ready[SERVER] = polled[at++].revents;
		move_both(connection);
	}
	if (polled[1].revents)
		accept_one();
	if (polled[0].revents)
		read_orders();
}

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &target) != 0) {
		fprintf(stderr, "usage: proxy HOST PORT\n");
		return 2;
	}
	list_init(&connections);
	take_port();
	printf("{\"event\":\"listening\",\"port\":%d}\n", ntohs(address.sin_port));
	fflush(stdout);
	while (!quitting)
		turn();
	LIST_EACH (&connections, node)
		drop_connection(LIST_ENTRY(node, struct connection, node), false);
	alloc_free(polled);
	buf_fini(&input);
	freeaddrinfo(target);
	return 0;
}
