/* SPDX-License-Identifier: MIT
 *
 * All gradients are summed once backward is done: first all workers compute, then all communicate.
 */
#include "train/forecast.h"
#include "train/parallel.h"

struct options {
    enum coll_wire wire;
};

static base_status allreduce_combine(struct train_exchange *x)
{
    const struct options *options = x->options;

    return train_exchange_sum(x, &(struct coll_sum){.wire = options->wire});
}

static void allreduce_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct options *options = q->options;
    double n = q->seat.workers, size = options->wire == COLL_BF16 ? 0.5 : 1;

    cost->sent = 2 * (n - 1) / n * size * q->sizes->weights;
    cost->moved = n > 1 ? (n + 1) * q->sizes->weights : 0;
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
    .shares = true,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.wire = COLL_FP32},
    .examples = (const char *const[]){"", NULL},
    .cost = allreduce_cost,
    .leg = train_parallel_leg,
    .sum = &(const struct train_sum){.combine = allreduce_combine},
};
