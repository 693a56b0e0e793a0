/* SPDX-License-Identifier: MIT
 *
 * What a file in train/strategies/ provides: `const struct train_strategy train_strategy_NAME`.
 * A strategy turns the gradients of all workers into one sum that all of them update their weights
 * by. It is told each range of the flat gradient buffer as backward completes it, and it never
 * knows what a convolution is. In the order of a step:
 *
 *   ready    for every layer, last to first: this range of my gradients is complete
 *   combine  everything is complete: give me everybody's sum
 *
 * and then comes the update, the same for all: clip and optimiser, train/update.h.
 *
 * A view is a fixed set of workers. When one is lost, every call under way fails with
 * BASE_ERR_PEER_LOST, `close` is called, and with the next view `open`: a strategy keeps nothing
 * that belongs to a view longer than that. No weight is written before `combine` returned BASE_OK,
 * so a failed step is one that never was.
 */
#ifndef TRAIN_STRATEGY_H
#define TRAIN_STRATEGY_H

#include "base/option.h"
#include "base/status.h"
#include "coll/coll.h"
#include "nn/optimiser.h"
#include "train/fault.h"

/* Floats in front of the gradients that are summed with them: the batch's loss and the like. */
enum { TRAIN_HEAD = 16, TRAIN_MAX_RANGES = 64 };

struct train_range {
    size_t offset, count; /* in floats, the head included */
    const float *sum;     /* over all workers */
};

struct train_exchange {
    int rank, size;
    struct coll *coll;               /* NULL: alone in this process */
    bool talks;                      /* the communication thread has it (coll_async_begin) */
    struct coll_space *space;        /* everybody's head and gradients; NULL: alone */
    float *mine;                     /* head, then gradients; in the space */
    size_t floats;                   /* of both */
    int64_t step;                    /* that is under way, from 1 */
    uint32_t samples, whole;         /* of it: in this worker's share, in the batch */
    const void *options;             /* what followed the name, in the strategy's own struct */
    void *state;                     /* state_size bytes, zeros when open is called */
    bool one_host;                   /* several workers, and all of them share memory */
    const struct train_fault *fault; /* for tests: where this worker is to be lost */
    /* Set by open, on one host: combine only sums the head (train_exchange_head); each worker sums
     * and updates a slice of the model that all have in common (train/copies.h). Asked for again
     * in combine: it may have been refused. */
    bool slices;

    /* combine sets these: the head is the beginning of a range, which are disjoint and complete. */
    struct train_range ranges[TRAIN_MAX_RANGES];
    int range_count;
    /* Seconds, added to: moving and summing, waiting for others, and behind the computing. */
    double communicate, wait, overlapped;
};

/* A worker's own copy of the model, between rounds. */
struct train_replica {
    size_t floats, statistic_floats;
    float *weights, *slots[NN_MAX_SLOTS], *statistics;
    int slot_count;
    const float *round; /* the weights of the last round */
    float share;        /* this worker's, of the round's samples */
};

struct train_strategy {
    const char *name, *help;
    const char *commit_unit; /* the most that a lost worker can cost: "step" */
    bool alone;              /* serves one worker only */

    /* What may follow the name, "ddp:bucket=2M": a table over a struct; NULL: nothing. */
    const struct base_option *options;
    size_t options_size;
    const void *defaults;
    const char *const *examples; /* texts of options that tests run; NULL-ended; NULL: "" alone */

    size_t state_size;
    base_status (*open)(struct train_exchange *x); /* a view begins; or NULL */
    void (*close)(struct train_exchange *x);       /* it ends; accepts half-built; or NULL */
    void (*ready)(struct train_exchange *x, size_t offset, size_t count); /* or NULL */
    base_status (*combine)(struct train_exchange *x);

    /* Strategies that go apart for some steps, commit unit "round": `combine` then gives the
     * worker's own gradients, the head stays its own, too, and behind the steps that are `due`, and
     * wherever all must be the same (the end of an epoch, a checkpoint), `settle` makes one model
     * of all copies. NULL: all copies are the same after every step. */
    bool (*due)(const struct train_exchange *x, int64_t step);
    base_status (*settle)(struct train_exchange *x, const struct train_replica *replica);
};

extern const struct train_strategy *const train_strategy_registry[];
extern const size_t train_strategy_count;

/* "NAME" or "NAME:option=value,…". *options_p: its struct, to be freed; NULL where it has none. */
base_status train_strategy_find(const char *text, const struct train_strategy **strategy_p,
                                void **options_p);

/* For combine: sums the head. Whoever comes early waits for the others there. */
base_status train_exchange_head(struct train_exchange *x);

/* For combine: sums the head, then all gradients, on this thread. The head goes by itself: it is
 * exact whatever the gradients travel as, and waiting is told apart from communicating. */
base_status train_exchange_sum(struct train_exchange *x, const struct coll_sum *sum);

#endif
