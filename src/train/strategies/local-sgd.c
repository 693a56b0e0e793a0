/* SPDX-License-Identifier: MIT
 *
 * Local SGD (Stich 2019): every worker trains alone for k steps on its shares, then all average
 * their weights, each by its share of the samples. `warmup` steps at the beginning are averaged one
 * by one (post-local SGD, Lin et al. 2020). With `outer-lr` the round's mean change is a gradient
 * for an outer Nesterov step (DiLoCo, Douillard et al. 2023) whose velocity begins at zero with
 * every view.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "train/strategy.h"

struct options {
    int64_t k, warmup;
    double outer_lr, outer_momentum;
    bool slots;
};

struct state {
    float *velocity; /* of the outer step; NULL: there is none */
};

static base_status open(struct train_exchange *x)
{
    base_status st = BASE_OK;
    const struct options *options = x->options;
    struct state *state = x->state;

    if (options->outer_lr > 0)
        TRY(base_tensor(x->floats - TRAIN_HEAD, sizeof(float), "the outer velocity",
                        &state->velocity));
out:
    return st;
}

static void close(struct train_exchange *x)
{
    struct state *state = x->state;

    if (state != NULL)
        base_free(state->velocity);
}

/* The share's own mean: gradients come scaled for the whole batch. */
static base_status combine(struct train_exchange *x)
{
    float scale = x->samples > 0 ? (float)x->whole / (float)x->samples : 0;

    for (size_t i = TRAIN_HEAD; i < x->floats; i++)
        x->mine[i] *= scale;
    x->ranges[0] = (struct train_range){0, x->floats, x->mine};
    x->range_count = 1;
    return BASE_OK;
}

static bool due(const struct train_exchange *x, int64_t step)
{
    const struct options *options = x->options;

    return step <= options->warmup || step % options->k == 0;
}

static void outer_step(const struct train_exchange *x, const struct train_replica *r)
{
    const struct options *options = x->options;
    float *velocity = ((struct state *)x->state)->velocity;
    float lr = (float)options->outer_lr, momentum = (float)options->outer_momentum;

    for (size_t i = 0; i < r->floats; i++) {
        float change = r->round[i] - r->weights[i];

        velocity[i] = momentum * velocity[i] + change;
        r->weights[i] = r->round[i] - lr * (change + momentum * velocity[i]);
    }
}

static base_status average(struct train_exchange *x, float share, float *of, size_t count)
{
    for (size_t i = 0; i < count; i++)
        of[i] *= share;
    return coll_all_reduce(x->coll, of, count, NULL);
}

static base_status settle(struct train_exchange *x, const struct train_replica *r)
{
    base_status st = BASE_OK;
    const struct options *options = x->options;
    const struct state *state = x->state;
    double began = base_now();

    TRY(average(x, r->share, r->weights, r->floats));
    for (int i = 0; options->slots && i < r->slot_count; i++)
        TRY(average(x, r->share, r->slots[i], r->floats));
    TRY(average(x, r->share, r->statistics, r->statistic_floats));
    if (state->velocity != NULL)
        outer_step(x, r);
    x->communicate += base_now() - began;
out:
    return st;
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "k", .argument = "N", .kind = BASE_INT, .offset = AT(k), .min = 1, .max = 1e6,
     .help = "steps between averages"},
    {.name = "warmup", .argument = "N", .kind = BASE_INT, .offset = AT(warmup), .max = 1e12,
     .help = "steps at the beginning that are averaged each"},
    {.name = "slots", .kind = BASE_FLAG, .offset = AT(slots),
     .help = "average the optimiser's state, too"},
    {.name = "outer-lr", .argument = "X", .kind = BASE_REAL, .offset = AT(outer_lr), .max = 10,
     .help = "outer Nesterov step by the mean change; 0: the mean itself"},
    {.name = "outer-momentum", .argument = "X", .kind = BASE_REAL, .offset = AT(outer_momentum),
     .max = 0.999, .help = "of the outer step"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_local_sgd = {
    .name = "local-sgd",
    .help = "everybody trains alone for k steps, then weights are averaged",
    .commit_unit = "round",
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.k = 8, .outer_momentum = 0.9},
    .examples = (const char *const[]){"k=1", "k=4,warmup=2,slots", "k=4,outer-lr=0.7", NULL},
    .state_size = sizeof(struct state),
    .open = open,
    .close = close,
    .combine = combine,
    .due = due,
    .settle = settle,
};
