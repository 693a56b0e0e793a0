/* SPDX-License-Identifier: MIT
 *
 * What a file in train/tasks/ provides: `const struct train_task train_task_NAME`. A task is what
 * is trained: its data, its model, how a batch is computed and how good the model is. It does not
 * know how the work is divided: workers of any strategy call it for their shares. What it owns is
 * in session->work.
 */
#ifndef TRAIN_TASK_H
#define TRAIN_TASK_H

#include "base/json.h"
#include "base/str.h"
#include "data/loader.h"
#include "model/about.h"
#include "model/weights.h"
#include "store/checkpoint.h"

struct train_session;
struct train_sizes;

/* Of a batch or several; in the end of all workers. */
struct train_outcome {
    double loss_sum;
    int64_t correct, seen;
};

/* How good the model is on samples: numbers that are added over workers, in the order of ranks.
 * Counts are exact below 2^53. A task may have more, from TRAIN_SCORE_OWN on. */
enum { TRAIN_SCORE_COUNT, TRAIN_SCORE_LOSS, TRAIN_SCORE_CORRECT, TRAIN_SCORE_OWN };
double train_score_mean(const double *score, int index); /* over the samples; 0 of none */

/* The figure that models are compared by; higher is better. */
struct train_grade {
    const char *key, *title; /* in JSON, and for a person */
    double scale;
    int decimals;
    const char *unit;
    bool counted; /* it is the share of samples that are `correct`, known of every step */
    bool scored;  /* nothing is known of a step, not even its loss: the figure comes from scores */
};
/* "accuracy 96.67 %"; of NAN "R² -" */
void train_grade_text(const struct train_grade *grade, double value, struct base_str *text);

/* Rows of a part of the state, one after another, and floats of each. */
struct train_rows {
    float *at;
    size_t width;
};

/* Where range `part` of the rows begins, of `parts` ranges of about equal work: one for each
 * worker, or many of which a worker has its share. work (rows+1), rising: what a range costs; NULL:
 * all rows the same. */
uint32_t train_rows_begin(const uint64_t *work, uint32_t rows, int64_t part, int64_t parts);

enum { TRAIN_MAX_WRITES = 4 };

/* The rows of a phase can be computed apart from each other, in any division, with the same bits.
 */
struct train_phase {
    uint32_t rows;
    const uint64_t *work; /* (rows+1) rising: what a range of rows costs; NULL: all the same */
    struct train_rows writes[TRAIN_MAX_WRITES]; /* what of the state the rows become */
    int write_count;
};

/* Rows at the beginning of the weights that stay with one worker each while what is after them
 * travels. */
struct train_stays {
    uint32_t rows; /* 0: the model has no such rows */
    size_t width;
    const uint64_t *work; /* as in struct train_phase */
};

/* A sweep that is shared by workers whose rows stay, while the rest of the weights goes round in
 * *bundles*: for strategy `rotate`. Every bundle comes to every worker once in a *rotation*, of
 * which a sweep has several. */
struct train_rotation {
    struct train_stays (*stays)(const struct train_session *session);
    /* Prepares the data of rows from … to-1. `least`: threads that should find work in a bundle. */
    base_status (*lay_out)(struct train_session *session, uint32_t from, uint32_t to,
                           uint32_t bundles, uint32_t least);
    uint32_t (*count)(const struct train_session *session); /* of rotations */
    /* Floats of a bundle. Their memory is the strategy's: `bundles` has them one after another, and
     * is zeros at first. */
    size_t (*floats)(const struct train_session *session);
    /* A sweep begins: of the weights, bundles from … to-1 get theirs. */
    void (*begin)(struct train_session *session, uint32_t from, uint32_t to, float *bundles);
    /* Trains `rows`, those of the layout, and the bundle. */
    void (*train)(struct train_session *session, float *rows, float *bundles, uint32_t rotation,
                  uint32_t bundle);
    /* What bundles from … to-1 hold goes to its places in `rest`, the weights after the rows that
     * stay; train_sweeps' `finish` comes when that has become the state. */
    void (*end)(const struct train_session *session, uint32_t from, uint32_t to,
                const float *bundles, float *rest);
};

/* A task that goes over all of its data at once, in *sweeps*, in place of batches and gradients: a
 * sweep is a step and an epoch. Every worker has the whole state; phases write to the part of it
 * that is compared (train_state.compared), `finish` alone to the rest. */
struct train_sweeps {
    bool (*divides)(const struct train_session *session); /* can workers share its phases? */
    int (*phases)(const struct train_session *session);
    /* The same on every worker: what its rows need from the state as it is. */
    base_status (*prepare)(struct train_session *session, int phase, struct train_phase *phase_p);
    void (*run)(struct train_session *session, int phase, uint32_t from, uint32_t to);
    /* All phases are done: the same on every worker. */
    base_status (*finish)(struct train_session *session);
    int64_t (*count)(const struct train_session *session); /* of sweeps, of the whole training */
    /* Data was added after the position's step: the position's plan_start from there on. */
    int64_t (*restart)(const struct train_session *session);
    /* Is the model of the position one to be judged by its validation? */
    bool (*settled)(const struct train_session *session);
    const struct train_rotation *rotation; /* of models that have `stays` rows */
    const char *(*rotating)(void);         /* which models these are */
};

/* What `auto` stands for, and why. */
struct train_choice {
    const char *strategy, *why;
};

/* Samples of the training part that one worker computes whole, in this order. */
struct train_block {
    int64_t epoch;       /* whose augmentation they get */
    const uint32_t *ids; /* NULL: those of the epoch's order from `from` on */
    size_t from, count;
    uint32_t batch; /* computed at once; at most this worker's largest share of a batch */
};

/* The value of an option that a person has not given, where it is not the job's usual one. */
struct train_preference {
    const char *option, *value;
};

struct train_task {
    const char *name, *help;
    size_t size;   /* of session->work, zeros at first */
    unsigned uses; /* bits of enum train_use (train/job.h): options that are not mistakes */
    const struct train_preference *prefers; /* {0}-ended; or NULL */

    /* Is this model, as --model has it, of this task? NULL: whatever no other task takes. */
    bool (*takes)(const char *model);
    /* For `auto`; NULL: by the number of workers. `model`: as --model has it; NULL: any. */
    struct train_choice (*choose)(const char *model, bool several);

    /* Opens the data; sets session->count and session->digest. Allocates no model. */
    base_status (*open)(struct train_session *session);
    void (*close)(struct train_session *session); /* accepts half-opened */

    /* Describes the model that `text` is (NULL: the one that the job names): session->state without
     * memory for weights and slots. `discard` gives it up, for a model that is described anew;
     * accepts half-described. */
    base_status (*describe)(struct train_session *session, const char *text);
    /* Describes the job's model far enough for `sizes`, and nothing else: for a plan. NULL: its
     * models are not planned. */
    base_status (*survey)(struct train_session *session);
    void (*discard)(struct train_session *session);
    const char *(*text)(const struct train_session *session);
    /* What a worker needs where `workers` divide batches of `batch` samples and compute their
     * shares in `accumulate` pieces; fails where it is more than can be counted. The model is
     * described; it may be asked before there is room for anything (train/memory.h). */
    base_status (*sizes)(const struct train_session *session, int workers, int64_t batch,
                         int64_t accumulate, struct train_sizes *sizes_p);
    /* Starting values from the seed, of what this worker holds. */
    base_status (*start)(struct train_session *session);
    /* Chooses session->kernels, once a job; `wished` is what a run began with, or --kernels. */
    base_status (*tune)(struct train_session *session, const char *wished);
    /* Memory for this worker's share of the batch in this view. */
    base_status (*fit)(struct train_session *session);

    const struct train_sweeps *sweeps; /* in place of next, compute and undo; NULL: these */
    /* Optional. This worker's training samples (own_samples) in the order of an epoch, and the
     * class of each (NULL: not asked for). Returns the number of classes; 1 where samples have
     * none. */
    int32_t (*order)(struct train_session *session, int64_t epoch, uint32_t *ids, int32_t *classes);
    /* Optional. From now on `next` serves the samples of blocks, in batches of which this worker
     * has all, until they are used up: a batch of 0 samples. A block that comes while another is
     * under way is prepared meanwhile and served after it. With NULL, or at the next `fit`, blocks
     * that are left are forgotten, and `next` serves shares of the batch at the position again. */
    base_status (*take)(struct train_session *session, const struct train_block *block);

    /* This worker's share of the batch at the position; or, after `take`, the block's next batch.
     */
    base_status (*next)(struct train_session *session, struct data_batch *batch_p);
    /* Forward and backward of it: gradients of the whole batch's mean loss, in the exchange. The
     * strategy is told of each range that is complete. */
    base_status (*compute)(struct train_session *session, const struct data_batch *batch,
                           struct train_outcome *outcome);
    /* The step failed: what `compute` has changed besides gradients is as it was. */
    void (*undo)(struct train_session *session);
    /* Where session->closed: all of the training, in place of the strategy's leg. Optional. */
    base_status (*solve)(struct train_session *session);
    /* Makes one of what each worker has kept of its own samples alone, such as the running
     * statistics of batch-norm; all workers call it at the same step. */
    base_status (*unite)(struct train_session *session);

    /* Scores: numbers of this worker's share of a part; then what they say, as a line, a report
     * and an object. */
    size_t (*score_count)(const struct train_session *session);
    base_status (*score)(struct train_session *session, enum data_part part,
                         struct data_share share, double *score);
    void (*score_text)(const struct train_session *session, const double *score,
                       struct base_str *text);
    json_t *(*score_json)(const struct train_session *session, const double *score);
    const struct train_grade *(*grade)(const struct train_session *session);
    double (*graded)(const struct train_session *session, const double *score);

    /* The files of a checkpoint, and the state from such. `carrier` is for what other workers hold;
     * NULL: all is here. Both NULL: those of train/state.h. */
    base_status (*write)(struct train_session *session, const struct model_carrier *carrier,
                         struct store_save *save);
    base_status (*read)(struct train_session *session, const struct model_carrier *carrier,
                        const struct store_checkpoint *checkpoint);
    /* The weights of another checkpoint's file alone; NULL: train_state_load_weights. */
    base_status (*read_weights)(struct train_session *session, const struct model_carrier *carrier,
                                const char *path);
    /* Adds to the object of docs/json.md; or NULL. */
    void (*result)(const struct train_session *session, json_t *result);

    /* What a checkpoint's manifest and run.json say about the model and its data. Takes over
     * `settings`, the job's. */
    void (*about)(const struct train_session *session, json_t *settings,
                  struct model_about *about_p);
    /* Rank 0 after an epoch: what else is to be kept of it, such as activations; or NULL. What
     * cannot be written is no failure of the training. */
    base_status (*record)(struct train_session *session);
    void (*announce)(const struct train_session *session); /* for a person, before the start */
};

extern const struct train_task *const train_task_registry[];
extern const size_t train_task_count;

/* The task of a model, as --model has it; NULL: not known yet, the task of most models. */
const struct train_task *train_task_of(const char *model);

#endif
