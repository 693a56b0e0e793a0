/* SPDX-License-Identifier: MIT
 *
 * A worker of the ring, as its parts know it: the stages that it computes (stages.h), the version
 * of them that it can go back to (spare.h), what replicas lack (replicas.h), and what the workers
 * know of each other's steps (commit.h).
 */
#ifndef TRAIN_STRATEGIES_RING_RING_H
#define TRAIN_STRATEGIES_RING_RING_H

#include "train/step.h"
#include "train/strategies/ring/foresee.h"
#include "train/strategies/ring/measure.h"
#include "train/strategies/ring/run.h"

/* What a version has besides weights and slots. */
struct ring_moment {
    struct train_position position;
    float *statistics;
    int64_t *tracked;
    int64_t samples; /* of this worker */
};

enum { RING_OPEN_BATCHES = 2 };

struct ring_async { /* async.h; zeros: not used */
    struct ring_batch {
        struct data_batch batch;
        float *x, *numbers;
        int32_t *labels;
        uint32_t *ids;
    } batches[RING_OPEN_BATCHES];
    struct ring_run runs[RING_OPEN_BATCHES]; /* of each batch, by its number */
    int open;                                /* batches that were begun and are not complete … */
    int64_t begun, pieces; /* … and all that were begun, with all their micro-batches */
};

struct ring_spare { /* zeros: none is needed */
    /* Weights and slots of each stage, and the rest, as they were before the newest step, or when
     * replicas were renewed. */
    float *former[RING_MAX_LAPS][1 + NN_MAX_SLOTS];
    struct ring_moment before;
    /* After the newest step. Running statistics of the state are those of the one under way. */
    struct ring_moment now;
    float *sent[RING_MAX_LAPS]; /* gradients of the newest step, on their way to replicas */
    float *coming;              /* running statistics of replicas */
    /* Slots of replicas, where these come whole; `sum` of each has the weights. */
    float *slots[RING_MAX_KEPT][NN_MAX_SLOTS];
};

/* What a worker tells the others when its gradients are complete. */
struct ring_word {
    struct train_outcome outcome; /* of the worker with the last layer; zeros of the others */
    int64_t stop, renew;
};

/* A step's gradients go to the workers that have replicas of its stages, those of this worker's
 * replicas come, and then all tell each other a word. A worker that has the words of all knows that
 * all can complete the step. */
struct ring_report {
    struct train_session *session;
    int64_t step;
    struct train_message list[4 * RING_MAX_KEPT];
    size_t count;
    struct ring_word mine, all[COMM_MAX_WORKERS];
    struct comm_task task;
    bool under_way;     /* on the engine's thread */
    base_status failed; /* BASE_OK; or why the last one did */
};

/* What a worker knows to count. */
struct ring_note {
    int64_t known;                /* the newest such step; -1: none */
    struct train_outcome outcome; /* of that step … */
    double scale;                 /* … and what its gradients were multiplied by */
};

struct ring {
    struct ring_stages stages;
    struct ring_profile profile; /* what this worker has measured */
    struct ring_outlook outlook; /* what to expect of this view's steps … */
    bool measured;               /* … in seconds; otherwise in flops */

    struct ring_spare spare;
    struct ring_async async;
    int64_t staleness[2]; /* batches that lacked no update, and one */
    struct ring_report report;
    struct train_step step; /* the newest that was reported */
    /* A worker was lost before this one had all words of it, and another one may have them. The
     * next view knows (ring_reconcile). Meanwhile the step is in the gradients alone, or, where
     * steps overlap, in the weights, and those before it are spare. */
    bool doubtful;
    bool rare;     /* steps of this view do not count one by one (rare.h) … */
    bool renewing; /* … and it is doubtful whether all replicas were renewed at this one */
    struct ring_note counted; /* but for `known`, which follows from the position */

    struct train_update lacked; /* by replicas: by this one from this float on, and by the next */
    int lacking;
    size_t lacking_from;
};

static inline struct ring *ring_of(const struct train_session *session)
{
    return session->strategy_state;
}

/* Replicas are not renewed by every step (rare.h). */
static inline bool ring_is_rare(const struct train_session *session)
{
    return ring_options_every(session->options) > 1 && session->team.exchange.size > 1;
}

/* Batches are not flushed (async.h). */
static inline bool ring_is_async(const struct train_session *session)
{
    return ((const struct ring_options *)session->options)->async;
}

static inline bool ring_overlaps(const struct train_session *session)
{
    return ring_options_overlap(session->options, session->team.exchange.size,
                                session->job->clip > 0);
}

#endif
