/* SPDX-License-Identifier: MIT
 *
 * Between the files of the strategy `ps`: what a worker of it keeps across views, the leg
 * (strategies/ps.c), a block of it (block.c), who has what (seats.c) and what happens after a leg
 * that ended half-way (recover.c).
 */
#ifndef TRAIN_STRATEGIES_PS_PS_H
#define TRAIN_STRATEGIES_PS_PS_H

#include "train/step.h"
#include "train/strategies/ps/client.h"

struct ps_options {
    int64_t servers; /* 0: by the number of processes */
    char *wire;      /* format of pushes; NULL: floats as they are … */
    int64_t bucket;  /* … so many bytes at a time */
    enum ps_overlap { PS_OVERLAP_AUTO, PS_OVERLAP_ON, PS_OVERLAP_OFF } overlap;
    bool apart; /* servers do not work */
    struct train_rules rules;
    bool correct; /* stale gradients */
    double lambda;
};

struct ps {
    struct ps_server server; /* of this process, if it serves */
    bool serves;             /* the struct above is one */
    bool works;              /* this process computes, in this leg */
    struct ps_client client;
    struct ps_parcel parcel;
    struct train_outline outline; /* of the newest push */
    int64_t clock;                /* of this worker's pushes in this view */
    uint64_t number;              /* of the view's newest entry, at a meeting */
    bool blocks;                  /* the task serves blocks now */
    uint64_t told_of;             /* ranks of the view of whose rubbish a person was told: bits */

    /* A leg under way, or one that ended half-way: its view and this worker's place in it. */
    bool dirty;
    uint32_t view;
    int rank;
    struct train_step step;
    int64_t step_number;    /* of that block, as the task knows it */
    bool computing, pushed; /* the block under way has no answer; it was pushed */

    struct train_span left[TRAIN_MAX_SPANS + 1]; /* samples above the cursor that are done */
    int left_count;
    struct train_outcome unfinished; /* of the step after the position, from before a loss */
    struct train_staleness staleness;
    double told;                   /* when the journal was told of a step … */
    struct train_clock told_clock; /* … and the clock then */
};

/* A server's process tells its journal of every step whose samples are all in the weights. */
void ps_tell(struct train_session *session);

/* ---- seats.c; all but the first two are hooks of the strategy (train/strategy.h) ---- */

struct ps_seats ps_seats(const struct ps_options *options, int size);
/* Are gradients pushed while backward goes on? The norm that --clip needs is known after it. */
bool ps_overlaps(const struct ps_options *options, bool one_host, bool clips);
int ps_first_worker(const void *options, int size);
unsigned ps_roles(const struct train_session *session, int rank);
void ps_place(const struct train_placing *placing, int rank, struct train_holds *wanted);
void ps_memory(const struct train_memory_question *question, struct train_memory *memory);
void ps_cost(const struct train_memory_question *question, struct train_cost *cost);

/* ---- block.c ---- */

/* The block of the newest answer: its gradients are in the exchange, and what there is to say of
 * them in ps->outline. */
base_status ps_compute(struct train_session *session);
/* Hooks of the strategy (train/strategy.h). */
base_status ps_await(struct train_session *session, size_t offset, size_t count);
void ps_ready(struct train_exchange *x, size_t offset, size_t count);

/* ---- recover.c ---- */

void ps_close_server(struct ps *ps);
/* The leg ended half-way: what servers keep is what counts. */
void ps_fail(struct train_session *session, base_status st);
/* Hooks of the strategy (train/strategy.h). */
base_status ps_reconcile(struct train_session *session);
void ps_settle(struct train_session *session, struct train_version version);

#endif
