/* SPDX-License-Identifier: MIT
 *
 * The stages of one worker of the ring: a network for each, with as many micro-batches in flight as
 * the rule allows. run.h computes batches on them.
 */
#ifndef TRAIN_STRATEGIES_RING_STAGES_H
#define TRAIN_STRATEGIES_RING_STAGES_H

#include "nn/net.h"
#include "train/session.h"
#include "train/strategies/ring/mail.h"

struct train_memory_question;

struct ring_stage {
    int worker;      /* that computes it */
    int first, last; /* layers first … last-1 */
    struct nn_range weights, statistics;
    struct nn_net *net; /* NULL: another worker computes it */
    float *sum;         /* of the gradients of all micro-batches */
    /* Where two batches are open: weights of the older one; gradients of the younger one. */
    float *stash, *next_sum;
};

/* What a worker can do while its stages wait: `some` of it; false: nothing is left. */
struct ring_chore {
    bool (*some)(void *context);
    void *context;
};

enum { RING_MAX_KEPT = (RING_MAX_REPLICAS - 1) * RING_MAX_LAPS };

struct ring_stages { /* zeros: none */
    struct ring_cut cut;
    struct ring_mail mail;
    struct ring_rule rule; /* as it is when a run begins */
    struct ring_stage at[RING_MAX_LAPS];
    int count;
    int copies;                            /* workers that have each stage */
    struct ring_stage kept[RING_MAX_KEPT]; /* replicas of workers before this one, nearest first */
    int kept_count;
    int piece;               /* the most samples of a micro-batch */
    float *gradients;        /* of the micro-batch under way, from the second on */
    struct ring_chore chore; /* while a batch is learnt from; zeros: none */
};

/* For the view under way. */
base_status ring_stages_open(struct ring_stages *stages, const struct train_session *session,
                             int piece);
void ring_stages_close(struct ring_stages *stages); /* accepts zeros and half-opened */

/* Has this worker the model's last layer? */
bool ring_stages_judge(const struct ring_stages *stages);

/* What a worker's stages take: activations with working memory, gradients, messages; and their
 * weights, and those of replicas. */
struct ring_bytes {
    double activations, gradients, messages, weights, replicas;
};
base_status ring_stages_memory(const struct nn_graph *graph, const struct ring_options *options,
                               const struct ring_cut *cut, int rank, int64_t pieces, int piece,
                               struct ring_bytes *bytes_p);

#endif
