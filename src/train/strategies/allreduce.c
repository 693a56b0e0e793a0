/* SPDX-License-Identifier: MIT
 *
 * All gradients are summed once backward is done: everybody computes, then everybody communicates.
 */
#include "train/strategy.h"

struct options {
    const char *wire;
};

struct state {
    struct coll_sum sum;
};

static base_status open(struct train_exchange *x)
{
    const struct options *options = x->options;
    struct state *state = x->state;

    return train_wire_find(options->wire, &state->sum.wire);
}

static base_status combine(struct train_exchange *x)
{
    const struct state *state = x->state;

    return train_exchange_sum(x, &state->sum);
}

static const struct base_option table[] = {
    {"wire", "TYPE", BASE_TEXT, offsetof(struct options, wire), 0, 0,
     "what gradients travel as: fp32, or bf16 (half the bytes; sums stay fp32)", false},
    {0},
};

const struct train_strategy train_strategy_allreduce = {
    .name = "allreduce",
    .help = "all gradients are summed at once, behind the backward",
    .commit_unit = "step",
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.wire = "fp32"},
    .examples = (const char *const[]){"", NULL},
    .state_size = sizeof(struct state),
    .open = open,
    .combine = combine,
};
