/* SPDX-License-Identifier: MIT
 *
 * What a file in train/strategies/ provides: `const struct train_strategy train_strategy_NAME`.
 * A strategy says how the workers of a view divide and combine the work. The loop (train/loop.c)
 * owns the meetings, at which all workers have the same model; the way from one meeting to the next
 * is the strategy's *leg*. Which worker holds which ranges of the state is the strategy's *place*;
 * entering a view, saving, loading and comparing go by it.
 *
 * Synchronous strategies share a leg, train_parallel_leg (train/parallel.h): every worker computes
 * the gradients of its share of each batch, and all make the same update by their sum. Such a
 * strategy provides a `sum`. In the order of a step:
 *
 *   combine  all of my gradients are complete: give me the sum over the workers
 *   apply    update the weights by the sum
 *
 * A view is a fixed set of workers. When one is lost, every call under way fails with
 * BASE_ERR_PEER_LOST, `close` is called, and in the next view `open`: a strategy keeps nothing that
 * belongs to a view longer than that.
 */
#ifndef TRAIN_STRATEGY_H
#define TRAIN_STRATEGY_H

#include "base/option.h"
#include "base/status.h"
#include "cluster/roles.h"
#include "coll/coll.h"
#include "train/clock.h"
#include "train/fault.h"
#include "train/holds.h"
#include "train/task.h"

struct data_batch;
struct nn_graph;
struct nn_loan;
struct train_cost;
struct train_job;
struct train_memory;
struct train_memory_question;
struct train_outcome;
struct train_session;
struct train_shares;
struct train_tally;
struct train_touched;
struct train_update;

/* Floats in front of the gradients that are summed with them: the batch's loss and the like. */
enum { TRAIN_HEAD = 16, TRAIN_MAX_RANGES = 64 };

struct train_range {
    size_t offset, count; /* in floats, the head included */
    const float *sum;     /* over all workers */
};

/* What workers exchange in a view: this worker's gradients, and means to talk about them. */
struct train_exchange {
    int rank, size;
    struct coll *coll;               /* NULL: alone in this process */
    bool one_host;                   /* several workers, and all of them share memory */
    struct coll_space *space;        /* every worker's head and gradients; NULL: alone */
    float *mine;                     /* this worker's head, then its gradients; in the space */
    size_t floats;                   /* of both */
    int64_t step;                    /* that is under way, from 1 … */
    uint32_t whole;                  /* … and the samples of its batch, of all workers */
    const void *options;             /* what followed the strategy's name, in its own struct */
    void *state;                     /* state_size bytes; zeros at first, kept across views */
    struct train_clock *clock;       /* combine enters wait and communicate, and comes back */
    const struct train_fault *fault; /* for tests: where this worker is to be lost */
    struct train_touched *touched;   /* of gradients that travel as rows; NULL: none do */

    /* combine sets these: disjoint and complete; the head is the beginning of one of them. */
    struct train_range ranges[TRAIN_MAX_RANGES];
    int range_count;
};

/* How gradients become one sum and the sum an update; for train_parallel_leg. */
struct train_sum {
    /* No weight is written before this returned BASE_OK: a failed step is one that never was. */
    base_status (*combine)(struct train_exchange *x);
    /* NULL: every worker updates all of its weights by the ranges. */
    base_status (*apply)(struct train_session *session, struct train_update *update);
};

/* What a network of the strategy does not have in memory as a whole, but borrows group by group
 * (nn_lender of nn/net.h). All workers then make the same passes, if need be without samples. */
struct train_lends {
    bool weights, gradients;
    base_status (*borrow)(struct train_session *session, struct nn_loan *loan);
    /* complete: lent gradients are those of this worker's whole share, and may be summed. */
    base_status (*give_back)(struct train_session *session, const struct nn_loan *loan,
                             bool complete);
};

/* A strategy under which a worker has some of the network's layers only. Every worker takes part in
 * every sample, so its share is the whole batch, in pieces that pass from worker to worker. */
struct train_stages {
    int64_t (*pieces)(const void *options); /* that a batch is cut into */
    /* Chooses what options leave open, by estimate, for that many workers and samples of a batch:
     * `least` pieces or more. False: there are as many as were asked for, or cannot be so many. */
    bool (*choose)(void *options, const struct nn_graph *graph, int workers, int64_t batch,
                   int64_t least);
    /* A run goes on whose options were `former`: pieces, which decide about bits, stay as they
     * were where the options leave them open. */
    void (*keep)(void *options, const void *former);
    /* Workers that know the model, and hold nothing of it yet, agree on what `place` follows from.
     * Collective. `source` is the rank that describes the state. */
    base_status (*divide)(struct train_session *session, int source);
    /* Memory for this worker's layers in this view, for pieces of up to `piece` samples; in place
     * of what there was. `discard` gives it up; accepts none. */
    base_status (*fit)(struct train_session *session, int piece);
    void (*discard)(struct train_session *session);
    /* Forward and backward of all pieces. The outcome is that of the worker with the last layer,
     * zeros of the others. */
    base_status (*compute)(struct train_session *session, const struct data_batch *batch,
                           struct train_outcome *outcome);
    /* The same without learning: adds samples to the tally of the worker with the last layer. */
    base_status (*score)(struct train_session *session, const struct data_batch *batch,
                         struct train_tally *tally);
};

/* What a place follows from. */
struct train_placing {
    const void *options;           /* of the strategy */
    int size;                      /* workers of the view */
    uint64_t floats[TRAIN_GROUPS]; /* of a buffer of each group */
    const struct train_shares *shares;
    struct train_stays stays;     /* of the model */
    const struct nn_graph *graph; /* the model */
};

struct train_strategy {
    const char *name, *help;
    const char *commit_unit; /* the most that a lost worker can cost: "step" */
    bool alone;              /* serves one worker only */
    bool sweeps;             /* serves tasks that go by sweeps (train/task.h), and no others */
    /* What is divided as --shares says. A round whose steps each worker makes alone is divided into
     * blocks, and a worker's steps are of even shares then. */
    enum { TRAIN_SHARES_NOTHING, TRAIN_SHARES_ROUNDS, TRAIN_SHARES_BATCHES } shares;
    bool aggregates; /* --aggregate says how it makes one update of several */
    int least;       /* fewer workers than this cannot go on */

    /* What may follow the name, "ddp:bucket=2M": a table over a struct; NULL: nothing. */
    const struct base_option *options;
    size_t options_size;
    const void *defaults;
    /* Options that make no sense, by themselves or together; NULL: all do. Rows of the table that
     * are `live` may change while the job runs, and then it is asked again. */
    base_status (*check)(const void *options);
    /* The same for options that do not go with other settings of the job. `first`: the options that
     * the job began with; at its start the same. NULL: all go. */
    base_status (*suits)(const void *options, const void *first, const struct train_job *job);
    const char *const *examples; /* texts of options that tests run; NULL-ended; NULL: "" alone */

    /* What worker `rank` of a view is to hold of weights and slots, ranges in ascending order that
     * do not touch; pure arithmetic, the same on every worker. NULL: everything. Running statistics
     * are everywhere and none of its business. `wanted` is empty before; versions do not matter. */
    void (*place)(const struct train_placing *placing, int rank, struct train_holds *wanted);
    /* The next view has been met, and no holds are told yet. Collective, on every worker of the
     * view, also on those that have no state. Workers that left a leg half-way may find out
     * together how far it came, and claim what they have then. NULL: each knows by itself. */
    base_status (*reconcile)(struct train_session *session);
    /* The next view has been met, and `version` was found to be committed ({-1, -1}: none, all go
     * back to a checkpoint). A worker whose last step was neither done nor undone, which its
     * claims (train/state.h) tell, completes it or gives it up; its claims are then of that
     * version alone. NULL: a failed leg leaves no such step. */
    void (*settle)(struct train_session *session, struct train_version version);

    /* Names, NULL-ended, of buffers of the weights' layout that the strategy keeps in the state,
     * after the optimiser's slots (train/state.h): zeros at first, handed to a worker that lacks
     * the state, saved under these names, which begin with "strategy.". NULL, or by its options:
     * none. */
    const char *const *(*extras)(const void *options);
    /* Each worker has extras of its own: one that is handed the state keeps those that it had, or
     * begins with zeros. For a strategy without a `place`. */
    bool own_extras;

    /* A checkpoint is due: all workers call `saving`, after which the extras that are written stand
     * for those of all: rank 0's, or with a `place` those of the workers that hold them. `saved`,
     * on every worker and after a failure, too, undoes that. Or NULL. */
    base_status (*saving)(struct train_session *session);
    void (*saved)(struct train_session *session);

    /* NULL, or by its options: the network has everything. */
    const struct train_lends *(*lends)(const void *options);
    const struct train_stages *stages; /* NULL: every worker has all layers */

    /* By its options: has every worker training data of its own? Then shape and classes must be the
     * same, and the rest may differ. NULL: all have the same data. */
    bool (*own_data)(const void *options);

    /* `memory` comes as that of a worker which holds everything and has its gradients in the
     * exchange (train/memory.h): changes what is different here. NULL: nothing is. */
    void (*memory)(const struct train_memory_question *question, struct train_memory *memory);
    /* What a step costs a worker, by formula: `cost` comes as that of a worker alone with its share
     * (train/forecast.h), and is to be changed to that of this strategy. NULL: `paceline plan`
     * leaves the strategy out. */
    void (*cost)(const struct train_memory_question *question, struct train_cost *cost);
    const char *const
        *plans; /* texts of options that a plan compares; NULL-ended; NULL: "" alone */

    /* By its options, of `size` processes: the rank of the first one that computes samples, where
     * those before it do something else. Batches are shared by those that compute. Pure arithmetic.
     * NULL: 0. */
    int (*first_worker)(const void *options, int size);
    /* What the worker of that rank of the view does: bits of enum cluster_role. Pure arithmetic of
     * options, rank and size. NULL: all compute. */
    unsigned (*roles)(const struct train_session *session, int rank);
    /* What this worker has counted so far (train/figures.h); a new reference. It is called between
     * steps, about once a second. NULL: there is nothing to tell. */
    json_t *(*figures)(const struct train_session *session);

    size_t state_size;         /* of x->state */
    void (*fini)(void *state); /* frees what it has kept across views; or NULL */
    base_status (*open)(struct train_session *session); /* a view begins; or NULL */
    void (*close)(struct train_session *session);       /* it ends; accepts half-opened; or NULL */

    /* Trains until step `goal` is done, or all workers have agreed to stop or to take the next
     * view. Returns the same on every worker, but for BASE_ERR_PEER_LOST: then workers may differ
     * by one commit unit, which entering the next view settles. A failed leg leaves the state as
     * it was at the last commit. */
    base_status (*leg)(struct train_session *session, int64_t goal);
    const struct train_sum *sum; /* of train_parallel_leg */
    /* Before a forward uses floats [offset, offset+count) of the weights: waits until they are in
     * the state. NULL: all weights are there whenever a batch is computed. */
    base_status (*await)(struct train_session *session, size_t offset, size_t count);
    /* For every layer of a backward, last to first: this range of x->mine is complete, and so are
     * all gradients after it. It is not told where a share is computed in pieces. Or NULL. */
    void (*ready)(struct train_exchange *x, size_t offset, size_t count);
    /* Makes the running statistics the same everywhere, in place of the task's `unite`; or NULL. */
    base_status (*unite)(struct train_session *session);

    /* A live option has another value from now on: session->options has it, `former` is the struct
     * as it was. Called between two legs, at the same step on every worker; before `open` options
     * change without a call. NULL: a leg looks at its options whenever it needs them. */
    base_status (*changed)(struct train_session *session, const void *former);
};

extern const struct train_strategy *const train_strategy_registry[];
extern const size_t train_strategy_count;

/* The text that stands for these options: those alone that differ from the defaults; base_free. */
char *train_strategy_text(const struct train_strategy *strategy, const void *options);
/* "NAME" or "NAME:option=value,…". *options_p: its struct, to be freed; NULL where it has none. */
base_status train_strategy_find(const char *text, const struct train_strategy **strategy_p,
                                void **options_p);

/* How many of `size` processes compute samples. */
int train_strategy_workers(const struct train_strategy *strategy, const void *options, int size);
/* What this process has of every batch; of one that computes none, as much as another has: its
 * network can still evaluate. */
struct data_share train_strategy_share(const struct train_session *session);

/* Bits of enum cluster_role. */
unsigned train_strategy_roles(const struct train_session *session, int rank);

/* The place of worker `rank`, running statistics included; versions are zeros. */
void train_strategy_place(const struct train_strategy *strategy,
                          const struct train_placing *placing, int rank,
                          struct train_holds *wanted_p);

/* What it lends; zeros: nothing. */
struct train_lends train_strategy_lends(const struct train_strategy *strategy, const void *options);

/* What `auto` stands for in a job of one worker and of several, and why; `task` may choose. `model`
 * as --model has it; NULL: any of the task. */
#define TRAIN_AUTO "auto"
struct train_choice train_strategy_auto(const struct train_task *task, const char *model,
                                        bool several);

/* An error where the strategy is for one worker and there are more. */
base_status train_strategy_serves(const struct train_strategy *strategy, int workers);
/* An error where settings of the job do not go with the strategy. `first`: the options that the job
 * began with. */
base_status train_strategy_suits(const struct train_strategy *strategy, const void *options,
                                 const void *first, const struct train_job *job);
/* Does it train this task? */
bool train_strategy_fits(const struct train_strategy *strategy, const struct train_task *task);
/* An error where it does not serve the task, with those that do. */
base_status train_strategy_trains(const struct train_strategy *strategy,
                                  const struct train_task *task);

/* An error where the job asks for an aggregator that is unknown, or that the strategy has no use
 * for. */
base_status train_strategy_aggregates(const struct train_strategy *strategy, const char *aggregate);
/* An error where the job asks for an attack that is unknown, or that the strategy has no defence to
 * measure against. */
base_status train_strategy_attacked(const struct train_strategy *strategy,
                                    const struct train_job *job);
/* Does it divide work as --shares says? */
base_status train_strategy_shares(const struct train_strategy *strategy, const char *shares,
                                  int workers);

/* For combine: sums the head. A worker that comes early waits for the others here. */
base_status train_exchange_head(struct train_exchange *x);

/* How many of the gradients, the first, travel as rows (train/touched.h). */
size_t train_exchange_rows(const struct train_exchange *x);
/* For combine: sums these; adds their range. */
base_status train_exchange_sum_rows(struct train_exchange *x);

/* For combine: sums the head, then all gradients, on this thread. The head goes by itself: it is
 * exact whatever the gradients travel as, and waiting is told apart from communicating. */
base_status train_exchange_sum(struct train_exchange *x, const struct coll_sum *sum);

#endif
