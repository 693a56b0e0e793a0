/* SPDX-License-Identifier: MIT
 *
 * All gradients are summed once backward is done: first all workers compute, then all communicate.
 */
#include "train/defence.h"
#include "train/forecast.h"
#include "train/parallel.h"
#include "train/session.h"
#include "train/touched.h"

struct options {
    enum coll_wire wire;
    double momentum;
};

struct allreduce {
    struct train_defence defence;
    struct train_touched touched; /* without a defence */
};

static base_status allreduce_suits(const void *struct_of, const void *first,
                                   const struct train_job *job)
{
    const struct options *options = struct_of;

    (void)first;
    return train_defence_suits(job, options->momentum, options->wire);
}

static base_status allreduce_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct allreduce *state = s->strategy_state;

    TRY(train_defence_open(&state->defence, s, options->momentum));
    if (!train_defence_is_on(&state->defence))
        TRY(train_touched_open(&state->touched, s));
out:
    return st;
}

static void allreduce_close(struct train_session *s)
{
    struct allreduce *state = s->strategy_state;

    train_touched_close(&state->touched);
    train_defence_close(&state->defence);
}

static void allreduce_fini(void *state)
{
    train_defence_fini(&((struct allreduce *)state)->defence);
}

static const char *const *allreduce_extras(const void *options)
{
    return train_defence_extras(((const struct options *)options)->momentum);
}

static base_status allreduce_saving(struct train_session *s)
{
    train_defence_saving(&((struct allreduce *)s->strategy_state)->defence);
    return BASE_OK;
}

static base_status allreduce_unite(struct train_session *s)
{
    return train_defence_unite(&((struct allreduce *)s->strategy_state)->defence, s);
}

static base_status allreduce_combine(struct train_exchange *x)
{
    const struct options *options = x->options;
    struct allreduce *state = x->state;

    if (train_defence_is_on(&state->defence))
        return train_defence_combine(&state->defence, x);
    return train_exchange_sum(x, &(struct coll_sum){.wire = options->wire});
}

static void allreduce_memory(const struct train_memory_question *q, struct train_memory *m)
{
    if (q->defends)
        train_defence_memory(q, ((const struct options *)q->options)->momentum, m);
    else
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
    {.name = "momentum",
     .argument = "X",
     .kind = BASE_REAL,
     .offset = offsetof(struct options, momentum),
     .max = 0.999,
     .help = TRAIN_DEFENCE_MOMENTUM},
    {0},
};

const struct train_strategy train_strategy_allreduce = {
    .name = "allreduce",
    .help = "all gradients are summed at once, after the backward",
    .commit_unit = "step",
    .shares = TRAIN_SHARES_BATCHES,
    .aggregates = true,
    .least = 1,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.wire = COLL_FP32},
    .examples = (const char *const[]){"", NULL},
    .suits = allreduce_suits,
    .extras = allreduce_extras,
    .own_extras = true,
    .saving = allreduce_saving,
    .memory = allreduce_memory,
    .cost = allreduce_cost,
    .state_size = sizeof(struct allreduce),
    .fini = allreduce_fini,
    .open = allreduce_open,
    .close = allreduce_close,
    .leg = train_parallel_leg,
    .sum = &(const struct train_sum){.combine = allreduce_combine},
    .unite = allreduce_unite,
};
