/* SPDX-License-Identifier: MIT
 *
 * How much memory a worker needs, known before any of it is allocated: what the task computes with,
 * what the strategy keeps where, what the group talks with, and what the process has already. A
 * strategy says in its `memory` in what it differs from one where every worker holds everything. A
 * training that does not fit is refused with the figures and with what would fit.
 *
 * Counted is the worst moment of the worker's life: for `ddp` on one host the beginning and the
 * end, when the state is both in its own memory and in that which the workers share. Not counted
 * are pages of files (the program's, a mapped data set's): the kernel can take them back.
 */
#ifndef TRAIN_MEMORY_H
#define TRAIN_MEMORY_H

#include "base/json.h"
#include "base/str.h"
#include "train/strategy.h"

struct train_session;

enum train_memory_kind {
    TRAIN_MEMORY_WEIGHTS, /* running statistics included */
    TRAIN_MEMORY_GRADIENTS,
    TRAIN_MEMORY_SLOTS,       /* the optimiser's state */
    TRAIN_MEMORY_SPARE,       /* copies of the state, to go back to or to write the next one into */
    TRAIN_MEMORY_ACTIVATIONS, /* and the kernels' working memory */
    TRAIN_MEMORY_COMMUNICATION,
    TRAIN_MEMORY_DATA,    /* the set, batches made ready, room between memory and files */
    TRAIN_MEMORY_PROGRAM, /* the process as it was before, and its threads */
    TRAIN_MEMORY_KINDS
};

/* Bytes; infinite: more than can be counted. */
struct train_bytes {
    double own;    /* of this worker alone */
    double shared; /* in memory that the workers of a host share: there once for all of them */
};

struct train_memory {
    struct train_bytes of[TRAIN_MEMORY_KINDS];
    double files; /* pages of files, in none of the sums */
};

/* What a task needs for the whole model and a worker's share of the batch: bytes. */
struct train_sizes {
    double weights; /* and of the gradients, and of every slot */
    bool sweeps;    /* there are no gradients … */
    double early;   /* … and phases write to so much of the weights */
    struct train_stays stays;
    int slots;
    double statistics;
    double activations; /* of the samples that are computed at once; with working memory */
    double batches;     /* made ready by the loaders */
    double tensor;      /* the largest: what saving needs room for */
    double lent[2];     /* room to lend gradients alone, or [1] weights, too (train/pool.h) */
    struct {
        double weights; /* of the weights, those whose gradients can travel as rows … */
        double message; /* … in messages of so many bytes, for which a worker needs … */
        double memory;
    } rows;                       /* train/touched.h */
    int samples;                  /* computed at once */
    const struct nn_graph *graph; /* the model */
};

/* Where a worker is. */
struct train_seat {
    int workers, rank;
    int locals;  /* workers of its host, itself included */
    bool shares; /* … which share memory */
};

/* What a strategy is asked. */
struct train_memory_question {
    const struct train_sizes *sizes;
    const void *options; /* the strategy's */
    struct train_seat seat;
    bool clips;                  /* --clip */
    bool defends;                /* --aggregate has a rule (train/defence.h) */
    bool accumulates;            /* several pieces a step: their gradients are added up */
    bool saves;                  /* checkpoints; rank 0 does */
    double program, data, files; /* bytes that are there already */
    double steps;                /* between two meetings; of a `cost` */
};

/* Pure arithmetic: what the worker at `question->seat` needs under `strategy`. */
void train_memory_count(const struct train_strategy *strategy,
                        const struct train_memory_question *question,
                        struct train_memory *memory_p);

/* For a strategy's `cost`: bytes that a worker sends where all gradients are summed, some of them
 * as rows, which are fp32 whatever the others travel as. */
double train_memory_sent(const struct train_memory_question *question, enum coll_wire wire);

struct train_bytes train_memory_sum(const struct train_memory *memory);
/* Own memory, and this worker's part of what `locals` workers share. */
double train_memory_part(const struct train_memory *memory, int locals);
/* "activations 410 MB, weights 37 MB": the `most` largest parts, as train_memory_part counts. */
void train_memory_text(const struct train_memory *memory, int locals, int most,
                       struct base_str *text);
/* The worker's part, every kind of it, and what the process will have at its worst moment: all that
 * is shared, and pages of files. */
json_t *train_memory_json(const struct train_memory *memory, int locals);

/* What the task needs, with the shares and pieces that a batch has under `strategy`; infinite where
 * it is more than can be counted. */
void train_memory_sizes(const struct train_session *session, const struct train_strategy *strategy,
                        const void *options, int workers, int64_t batch, int64_t accumulate,
                        struct train_sizes *sizes_p);

/* Of this worker, into session->memory. Needs a described model and a team that was met. */
void train_memory_estimate(struct train_session *session);
/* Would this host and --memory do with other options of the strategy? */
bool train_memory_suffices(const struct train_session *session, const void *options);
/* A strategy that cuts batches into pieces chooses what its options leave open, so that the pieces
 * fit if any do. */
void train_memory_choose(const struct train_session *session, const struct train_strategy *strategy,
                         void *options);

/* Of this worker, into session->memory; an error where this host or --memory has less. Nothing
 * of the model is allocated yet. */
base_status train_memory_check(struct train_session *session);
/* The same for a later view whose share is larger: only a warning, the job is under way. */
void train_memory_warn(struct train_session *session);

#endif
