/* thread: a helper of the loop's. */
#ifndef PERILUNE_BASE_THREAD_H
#define PERILUNE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Runs run(data) on a thread that gets no signal, as those are the loop's; to be joined. False where the system gives
 * no thread: then nothing runs. */
bool thread_start(pthread_t *thread, void *(*run)(void *data), void *data);

/* The calling thread gives way to others where there are not processors enough for all (nice 10). */
void thread_give_way(void);

#endif
