/* SPDX-License-Identifier: MIT
 *
 * Where a worker's time goes. The clock is in one category at any moment, and to enter another one
 * ends the last, so the categories sum to the total by construction. One thread's clock.
 *
 *   enum train_category was = train_clock_enter(clock, TRAIN_WAIT);
 *   … wait …
 *   train_clock_enter(clock, was);
 */
#ifndef TRAIN_CLOCK_H
#define TRAIN_CLOCK_H

#include <jansson.h>

struct train_trace;

enum train_category { TRAIN_COMPUTE, TRAIN_DATA, TRAIN_COMMUNICATE, TRAIN_WAIT, TRAIN_CATEGORIES };

struct train_clock {
    enum train_category current;
    double began, since; /* of the clock; of the current category */
    double seconds[TRAIN_CATEGORIES];
    double busy_cpu;  /* this thread's CPU time outside of communicate and wait … */
    double cpu_since; /* … and where it stood when the clock last came back from these */
    double overlapped;
    struct train_trace *trace; /* is told of every category that begins; NULL: none is */
};

/* What is told of it. All but overlapped are exclusive and sum to total. */
struct train_times {
    double total, compute, communicate, wait, data;
    double stolen;     /* "computing", but the thread had no CPU: other processes had it */
    double overlapped; /* communication hidden by compute */
};

void train_clock_start(struct train_clock *clock); /* in TRAIN_COMPUTE */
/* Returns the category that ends. A system call only on the way into communicate and wait or out
 * of them. */
enum train_category train_clock_enter(struct train_clock *clock, enum train_category category);
/* The current category had `seconds` that belong to another one. */
void train_clock_move(struct train_clock *clock, enum train_category to, double seconds);
/* Seconds of a category since the clock was copied to `before`, the current stretch left out. */
double train_clock_since(const struct train_clock *clock, const struct train_clock *before,
                         enum train_category category);
/* A peer was lost: what was booked as communication since `before` was waiting for it. Returns the
 * clock to TRAIN_COMPUTE, from wherever the failure left it. */
void train_clock_lost(struct train_clock *clock, const struct train_clock *before);

struct train_times train_clock_times(const struct train_clock *clock); /* so far */
json_t *train_times_json(const struct train_times *times);

#endif
