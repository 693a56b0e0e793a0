/* SPDX-License-Identifier: MIT
 *
 * All gradients are summed once backward is done: first all workers compute, then all communicate.
 */
#include "train/forecast.h"
#include "train/parallel.h"
#include "train/session.h"
#include "train/touched.h"

struct options {
    enum coll_wire wire;
};

static base_status allreduce_open(struct train_session *s)
{
    return train_touched_open(s->strategy_state, s);
}

static void allreduce_close(struct train_session *s)
{
    train_touched_close(s->strategy_state);
}

static base_status allreduce_combine(struct train_exchange *x)
{
    const struct options *options = x->options;

    return train_exchange_sum(x, &(struct coll_sum){.wire = options->wire});
}

static void allreduce_memory(const struct train_memory_question *q, struct train_memory *m)
{
    m->of[TRAIN_MEMORY_COMMUNICATION].own += q->sizes->rows.memory;
}

static void allreduce_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct options *options = q->options;
    double n = q->seat.workers, whole = q->sizes->weights - q->sizes->rows.weights;

    cost->sent = train_memory_sent(q, options->wire);
    cost->moved = n > 1 ? (n + 1) * whole : 0;
}

static const struct base_option table[] = {
    {.name = "wire",
     .argument = "TYPE",
     .kind = BASE_ENUM,
     .offset = offsetof(struct options, wire),
     .names = coll_wire_names,
     .help = "what gradients travel as (bf16: half the bytes; sums stay fp32)"},
    {0},
};

const struct train_strategy train_strategy_allreduce = {
    .name = "allreduce",
    .help = "all gradients are summed at once, after the backward",
    .commit_unit = "step",
    .shares = TRAIN_SHARES_BATCHES,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.wire = COLL_FP32},
    .examples = (const char *const[]){"", NULL},
    .memory = allreduce_memory,
    .cost = allreduce_cost,
    .state_size = sizeof(struct train_touched),
    .open = allreduce_open,
    .close = allreduce_close,
    .leg = train_parallel_leg,
    .sum = &(const struct train_sum){.combine = allreduce_combine},
};
