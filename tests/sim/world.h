/* SPDX-License-Identifier: MIT
 *
 * A simulated world: threads of this process that take turns under a virtual clock. One of them
 * runs at a time; wherever it waits, sleeps or sends, the scheduler picks the next among those that
 * can run, by a random stream that the seed alone decides. When none can run, time jumps to the
 * next moment for which one waits. So a seed is a history: it runs the same again.
 *
 * Threads belong to simulated processes, which stall and die as a whole. A dead process's threads
 * are never picked again; what they had open stays as kill -9 leaves it, but for locks on files.
 *
 * A world takes over the whole process (base_world) and is never closed: run it in a child.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/thread.h"

/* SIM_MAPPED: an allocation of so many bytes is mapped: its pages are zero, and there once they are
 * touched. */
enum { SIM_MAX_THREADS = 1024, SIM_NAME = 24, SIM_MAPPED = 1 << 20 };

struct sim_process;

/* The caller becomes the world's first thread. `trace`: where every event is written; NULL: it only
 * goes into the digest. A history that lasts longer than `limit` virtual seconds has failed. */
void sim_begin(uint64_t seed, double limit, FILE *trace);

struct sim_process *sim_process_new(const char *name);
struct sim_process *sim_process_self(void);
int sim_process_number(const struct sim_process *process);
bool sim_process_is_alive(const struct sim_process *process);
void sim_process_run(struct sim_process *process, const char *thread, base_thread_body *body,
                     void *argument);
/* Kills it; the caller's own process, too, and then it does not return. */
void sim_process_kill(struct sim_process *process);
/* Kills it when the scheduler picks one of its threads for the `slice`-th time. */
void sim_process_kill_at(struct sim_process *process, uint64_t slice);
void sim_process_stall(struct sim_process *process, double seconds);
bool sim_process_is_stalled(const struct sim_process *process);
/* Is told of every death, while the dead process's threads still exist. */
void sim_on_death(void (*tell)(struct sim_process *process));

void sim_yield(void); /* another thread may run now */

/* Random numbers of the history; a choice that is made with them is part of it. */
uint32_t sim_random(uint32_t below);
double sim_unit(void); /* [0, 1) */
double sim_between(double low, double high);
double sim_spread(double low, double high); /* log-uniform */

/* An event of the history: goes into the digest and the trace. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for the trace alone: for events that follow from others. */
void sim_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t sim_digest(void);
uint64_t sim_switches(void);
int sim_raised(void); /* signals that processes have sent themselves */

/* The history has broken an invariant: says so, with the state of every thread, and ends this
 * process with SIM_FAILED. */
enum { SIM_FAILED = 3 };
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define sim_check(holds, ...)      \
    do {                           \
        if (!(holds))              \
            sim_fail(__VA_ARGS__); \
    } while (0)

#endif
