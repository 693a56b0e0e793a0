/* SPDX-License-Identifier: MIT
 *
 * All gradients are summed once backward is done: everybody computes, then everybody communicates.
 * The head goes first and by itself: it is exact whatever the gradients travel as, and whoever
 * comes early waits for the others there, so that waiting is told apart from communicating.
 */
#include <string.h>

#include "base/clock.h"
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
    base_status st = BASE_OK;
    const struct state *state = x->state;
    double began = base_now(), met;
    float *result;

    TRY(coll_all_reduce(x->coll, x->mine, TRAIN_HEAD, NULL));
    x->ranges[0] = (struct train_range){0, TRAIN_HEAD, x->mine};
    met = base_now();
    TRY(coll_space_all_reduce(x->coll, x->space, TRAIN_HEAD, x->floats - TRAIN_HEAD, &state->sum,
                              &result));
    x->ranges[1] = (struct train_range){TRAIN_HEAD, x->floats - TRAIN_HEAD, result};
    x->range_count = 2;
    x->wait += met - began;
    x->communicate += base_now() - met;
out:
    return st;
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
