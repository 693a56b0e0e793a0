/* SPDX-License-Identifier: MIT
 *
 * --aggregate under allreduce and ddp: in place of the sum of gradients a rule makes one gradient
 * of those of all workers (train/robust.h), and of their running statistics. What a worker says of
 * itself does not count: how many samples it has follows from the shares, and the loss of a step is
 * the median of the workers'. A worker that is found to be wrong leaves when most workers have
 * found it out.
 */
#ifndef TRAIN_DEFENCE_H
#define TRAIN_DEFENCE_H

#include "train/momentum.h"
#include "train/robust.h"

struct train_memory;
struct train_memory_question;
struct train_session;

struct train_defence { /* zeros: gradients are summed */
    struct train_session *session;
    struct train_aggregation aggregation; /* without a rule: the same */
    struct train_robust gradients, statistics;
    struct coll_space *space; /* of running statistics */
    struct train_momentum momentum;
    int64_t smoothed;       /* the step whose gradients the momentum waits with */
    float head[TRAIN_HEAD]; /* of all workers */
};

#define TRAIN_DEFENCE_MOMENTUM \
    "workers send running means of their gradients to --aggregate, of which X stays"

/* Does the job aggregate by a rule? `average` is the sum. */
bool train_defence_wanted(const struct train_job *job);
/* An error where settings do not go together. `momentum`, `wire`: the strategy's options. */
base_status train_defence_suits(const struct train_job *job, double momentum, enum coll_wire wire);
/* Extras of a strategy with that momentum; NULL: none. */
const char *const *train_defence_extras(double momentum);

/* What it needs. */
void train_defence_memory(const struct train_memory_question *question, double momentum,
                          struct train_memory *memory);

/* A view begins. Where the job does not want it, it only says who attacks. */
base_status train_defence_open(struct train_defence *defence, struct train_session *session,
                               double momentum);
void train_defence_close(struct train_defence *defence); /* accepts zeros */
void train_defence_fini(struct train_defence *defence);  /* what it kept across views */
static inline bool train_defence_is_on(const struct train_defence *defence)
{
    return defence->aggregation.rule != NULL;
}

/* A strategy's combine, while it is on. */
base_status train_defence_combine(struct train_defence *defence, struct train_exchange *x);
/* Running statistics, by the rule. While it is off: as the task does. */
base_status train_defence_unite(struct train_defence *defence, struct train_session *session);
/* A checkpoint is due: the momentum is that of its step. */
void train_defence_saving(struct train_defence *defence);

#endif
