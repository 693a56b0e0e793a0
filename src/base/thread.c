/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

const struct base_world *base_world;

base_status base_thread_start(struct base_thread *thread, const char *name, base_thread_body *body,
                              void *argument)
{
    int code;

    *thread = (struct base_thread){0};
    if (base_world != NULL) {
        thread->simulated = base_world->start(name, body, argument);
        return BASE_OK;
    }
    code = pthread_create(&thread->machine, NULL, body, argument);
    if (code != 0)
        return base_fail(BASE_ERR_MEMORY, "cannot start the thread '%s': %s", name, strerror(code));
    pthread_setname_np(thread->machine, name);
    return BASE_OK;
}

void base_thread_join(struct base_thread *thread)
{
    if (base_world != NULL)
        base_world->join(thread->simulated);
    else
        pthread_join(thread->machine, NULL);
}

/* What sched_setattr(2) takes. The kernel's header for it cannot be included beside pthread.h. */
struct turns {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t nanoseconds, deadline, period; /* the length of a turn; of deadline policies */
};

void base_thread_prompt(void)
{
    const uint64_t least = 100000; /* nanoseconds, what the kernel grants */
    struct turns turns = {0};

    if (base_world != NULL || syscall(SYS_sched_getattr, 0, &turns, (unsigned)sizeof turns, 0) != 0)
        return;
    if (turns.policy == SCHED_OTHER)
        turns.nanoseconds = least;
    else if (turns.policy == SCHED_FIFO || turns.policy == SCHED_RR)
        turns.priority++;
    syscall(SYS_sched_setattr, 0, &turns, 0); /* without it the thread is only slower */
}

void base_mutex_init(struct base_mutex *lock)
{
    pthread_mutex_init(&lock->machine, NULL);
    lock->held = false;
}

void base_mutex_fini(struct base_mutex *lock)
{
    pthread_mutex_destroy(&lock->machine);
}

void base_mutex_lock(struct base_mutex *lock)
{
    if (base_world == NULL) {
        pthread_mutex_lock(&lock->machine);
        return;
    }
    while (lock->held) /* its holder waits for something else meanwhile */
        base_world->wait(lock, INFINITY);
    lock->held = true;
}

void base_mutex_unlock(struct base_mutex *lock)
{
    if (base_world == NULL) {
        pthread_mutex_unlock(&lock->machine);
        return;
    }
    lock->held = false;
    base_world->wake(lock);
}

void base_signal_init(struct base_signal *signal)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&signal->machine, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void base_signal_fini(struct base_signal *signal)
{
    pthread_cond_destroy(&signal->machine);
}

void base_signal_wait(struct base_signal *signal, struct base_mutex *lock, double deadline)
{
    struct timespec until;

    if (base_world != NULL) { /* no other thread runs between the unlock and the wait */
        base_mutex_unlock(lock);
        base_world->wait(signal, deadline);
        base_mutex_lock(lock);
        return;
    }
    if (isinf(deadline)) {
        pthread_cond_wait(&signal->machine, &lock->machine);
        return;
    }
    until = base_timespec(deadline);
    pthread_cond_timedwait(&signal->machine, &lock->machine, &until);
}

void base_signal_wake(struct base_signal *signal)
{
    if (base_world != NULL)
        base_world->wake(signal);
    else
        pthread_cond_broadcast(&signal->machine);
}

void base_sleep_until(double moment)
{
    struct timespec until = base_timespec(moment);

    if (base_world != NULL) {
        while (base_now() < moment)
            base_world->wait(&until, moment);
        return;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}
