/* SPDX-License-Identifier: MIT
 *
 * Threads, locks, signals between threads, and sleep. Code that runs in the simulator too (comm,
 * coll, the worker's side of cluster, train) waits with these and tells the time with base_now
 * alone. In the machine's world they are pthreads with a monotonic clock. A simulated world
 * (`struct base_world`) replaces four functions: then one thread runs at a time, the others wait
 * for a signal or for a moment of the virtual clock, and the simulator alone decides which one is
 * next.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

typedef void *base_thread_body(void *argument);

struct base_thread {
    pthread_t machine;
    void *simulated;
};

/* `name`: of at most 15 characters, as debuggers show it. */
base_status base_thread_start(struct base_thread *thread, const char *name, base_thread_body *body,
                              void *argument);
void base_thread_join(struct base_thread *thread);

/* The calling thread waits most of the time and has little to do when it wakes, such as one that
 * moves messages: it asks for short turns on its core. Linux lets the thread that has the core end
 * its turn, of some milliseconds, before one that has woken, unless that one's turns are shorter;
 * and since 6.18 a thread that gives its core away waits for as long as a turn of its own. Its
 * share of the core stays. Nothing changes on Linux before 6.12, where turns have one length. With
 * a real-time policy the thread goes ahead of those that had its priority. */
void base_thread_prompt(void);

struct base_mutex {
    pthread_mutex_t machine;
    bool held; /* in a simulated world */
};

void base_mutex_init(struct base_mutex *lock);
void base_mutex_fini(struct base_mutex *lock);
void base_mutex_lock(struct base_mutex *lock);
void base_mutex_unlock(struct base_mutex *lock);

/* A signal is waited for with its lock held. As with every condition variable, a wait may end
 * without cause: look again at what is waited for. */
struct base_signal {
    pthread_cond_t machine;
};

void base_signal_init(struct base_signal *signal);
void base_signal_fini(struct base_signal *signal);
/* Until the signal, or until base_now() is `deadline`; INFINITY: for the signal alone. */
void base_signal_wait(struct base_signal *signal, struct base_mutex *lock, double deadline);
void base_signal_wake(struct base_signal *signal); /* all that wait */

void base_sleep_until(double moment); /* of base_now */

struct base_world {
    double (*now)(void);
    void *(*start)(const char *name, base_thread_body *body, void *argument);
    void (*join)(void *thread);
    /* Until a wake of the same address, or until now() is `deadline`. May end without cause. */
    void (*wait)(const void *address, double deadline);
    void (*wake)(const void *address);
};

/* The simulated world that this process is in; NULL: the machine's. Set before the first thread. */
extern const struct base_world *base_world;

#endif
