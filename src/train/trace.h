/* SPDX-License-Identifier: MIT
 *
 * When a worker did what in some of its steps: the spans from which `paceline trace` makes a
 * picture. A span ends where the next one begins, so the spans of a worker never overlap. They
 * follow the clock (train/clock.h); what is known more closely, such as the stage and the
 * micro-batch of the ring, a strategy tells with train_trace_enter.
 *
 * Traced are the first steps and after them one in TRAIN_TRACE_EVERY. Spans stay in memory of fixed
 * size until the workers meet; then all go to rank 0, which writes `trace` events. A step for which
 * there is no room is left out as a whole. One thread's.
 */
#ifndef TRAIN_TRACE_H
#define TRAIN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

struct train_run;
struct train_session;

enum { TRAIN_TRACE_FIRST = 8, TRAIN_TRACE_EVERY = 100 };

/* The first four are the categories of the clock. */
enum train_doing {
    TRAIN_DOING_COMPUTE,
    TRAIN_DOING_DATA,
    TRAIN_DOING_COMMUNICATE,
    TRAIN_DOING_WAIT,
    TRAIN_DOING_UPDATE,
    TRAIN_DOING_FORWARD, /* of a stage and a piece, like those that follow */
    TRAIN_DOING_BACKWARD,
    TRAIN_DOING_WEIGHTS, /* gradients of a layer's weights, where they are apart from the backward
                          */
    TRAIN_DOINGS
};
extern const char *const train_doing_names[TRAIN_DOINGS];

static inline bool train_doing_is_of_piece(enum train_doing doing)
{
    return doing >= TRAIN_DOING_FORWARD;
}

struct train_doing_of {
    enum train_doing doing;
    int stage, piece; /* of what is of a piece */
};

/* As it travels to rank 0: a whole number of floats. */
struct train_trace_span {
    double began; /* base_now */
    float seconds;
    uint32_t step;
    uint16_t doing, stage;
    uint32_t piece;
};

struct train_trace { /* zeros: of nothing */
    struct train_trace_span *spans;
    int count;  /* spans of complete steps, and of the one under way: */
    int kept;   /* the complete ones */
    bool armed; /* the step under way is traced */
    int64_t step;
    struct train_doing_of now;
    double since;
};

void train_trace_init(struct train_trace *trace);
void train_trace_fini(struct train_trace *trace);

/* A step begins; the one before it, if it was not ended, is complete. */
void train_trace_begin(struct train_trace *trace, int64_t step);
/* The step is complete: what comes is not of it. */
void train_trace_end(struct train_trace *trace);
/* The step never was. */
void train_trace_drop(struct train_trace *trace);
/* Steps after this one never were: they are done again. */
void train_trace_back(struct train_trace *trace, int64_t step);

/* The worker does something else from now on. Accepts NULL, and costs nothing outside of traced
 * steps. */
void train_trace_enter(struct train_trace *trace, enum train_doing doing);
/* The same for forward and backward. */
void train_trace_enter_piece(struct train_trace *trace, enum train_doing doing, int stage,
                             int piece);
/* The last `seconds` were this. */
void train_trace_past(struct train_trace *trace, enum train_doing doing, double seconds);

/* On all workers of the view: rank 0 writes what they have traced into the events. */
base_status train_trace_gather(struct train_session *session);

/* ---- trace_read.c: a run's events ---- */

struct train_traced {
    int64_t worker, rank, step;
    struct train_doing_of what;
    double began, seconds; /* on a clock that all spans of a view have in common */
};

struct train_traces {
    struct train_traced *at; /* by worker, and of each by time */
    size_t count;
};

/* `step`: that one alone; -1: all; 0: the newest that is there. */
base_status train_traces_read(const struct train_run *run, int64_t step,
                              struct train_traces *traces_p);
void train_traces_fini(struct train_traces *traces);

#endif
