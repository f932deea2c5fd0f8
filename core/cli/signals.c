#include "cli/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* timeout(1) signals the process and then its group, and a wrapper may pass on what Ctrl-C has already brought to the
 * whole group: what comes this close together is one request. */
#define ONE_REQUEST 0.3

/* What the loop installed for each, called for the first signal. */
static struct sigaction loops[NSIG];
static double asked_at; /* handlers only, which block each other's signals; 0 until the first */

/* Not clock_now, which is not made for handlers. */
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* In the handler itself and not in the loop, so that a second signal also ends a program whose loop is held up by a
 * script. */
static void on_end_signal(int signo)
{
	static const char line[] = "perilune: ended at once by a second signal\n";
	if (asked_at <= 0) {
		asked_at = now();
		loops[signo].sa_handler(signo);
	} else if (now() - asked_at > ONE_REQUEST) {
		ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
		(void)written;
		_exit(EXIT_FAILED);
	}
}

static void end(void *data)
{
	host_stop(data);
}

static void end_on(struct loop *loop, struct host *host, int signo)
{
	loop_on_signal(loop, signo, end, host);
	sigaction(signo, NULL, &loops[signo]);
	struct sigaction action = {.sa_handler = on_end_signal};
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaddset(&action.sa_mask, SIGINT);
	sigaction(signo, &action, NULL);
}

void signals_end(struct loop *loop, struct host *host)
{
	end_on(loop, host, SIGTERM);
	end_on(loop, host, SIGINT);
}

static void reload(void *data)
{
	host_reload(data, true, NULL, NULL);
}

void signals_reload(struct loop *loop, struct host *host)
{
	loop_on_signal(loop, SIGHUP, reload, host);
}
