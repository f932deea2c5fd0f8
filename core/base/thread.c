#include "base/thread.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE 10

bool thread_start(pthread_t *thread, void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = !pthread_create(thread, NULL, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* Linux's nice value is a thread's own. Where it can't be set, the thread goes on as it is. */
void thread_give_way(void)
{
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}
