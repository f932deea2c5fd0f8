#include "cli/signals.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* What the loop installed for each, called for the first signal. */
static struct sigaction loops[NSIG];
static volatile sig_atomic_t asked;

/* In the handler itself and not in the loop, so that a second signal also ends a program whose loop is held up by a
 * script. */
static void on_end_signal(int signo)
{
	static const char line[] = "perilune: ended at once by a second signal\n";
	if (!asked) {
		asked = 1;
		loops[signo].sa_handler(signo);
		return;
	}
	ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
	(void)written;
	_exit(EXIT_FAILED);
}

static void end(void *data)
{
	host_stop(data);
}

static void end_on(struct loop *loop, struct host *host, int signo)
{
	struct sigaction action;
	loop_on_signal(loop, signo, end, host);
	sigaction(signo, NULL, &loops[signo]);
	action = loops[signo];
	action.sa_handler = on_end_signal;
	sigaction(signo, &action, NULL);
}

void signals_end(struct loop *loop, struct host *host)
{
	end_on(loop, host, SIGTERM);
	end_on(loop, host, SIGINT);
}

static void reload(void *data)
{
	(void)data;
	log_warn(NULL, "SIGHUP ignored: this version does not reload; restart it for new code");
}

void signals_reload(struct loop *loop)
{
	loop_on_signal(loop, SIGHUP, reload, NULL);
}
