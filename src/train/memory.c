/* SPDX-License-Identifier: MIT */
#include "train/memory.h"

#include <math.h>
#include <stdlib.h>

#include "train/shares.h"

/* What a process takes besides anything that is counted: stacks of its threads, arenas of the
 * allocator, buffers of files. Measured: a few hundred kB. */
static const double PROCESS = 1e6;

static const char *const kind_names[TRAIN_MEMORY_KINDS] = {
    [TRAIN_MEMORY_WEIGHTS] = "weights",
    [TRAIN_MEMORY_GRADIENTS] = "gradients",
    [TRAIN_MEMORY_SLOTS] = "optimiser",
    [TRAIN_MEMORY_SPARE] = "copies",
    [TRAIN_MEMORY_ACTIVATIONS] = "activations",
    [TRAIN_MEMORY_COMMUNICATION] = "communication",
    [TRAIN_MEMORY_DATA] = "data",
    [TRAIN_MEMORY_PROGRAM] = "program",
};

/* A space (coll_space_open): in memory that the workers of a host share there is room for what each
 * has in it, and for the sums. */
static void count_space(const struct train_seat *seat, double bytes, struct train_memory *m)
{
    if (seat->shares && seat->locals > 1) {
        m->of[TRAIN_MEMORY_GRADIENTS].shared += seat->locals * bytes;
        m->of[TRAIN_MEMORY_COMMUNICATION].shared += bytes;
    } else {
        m->of[TRAIN_MEMORY_GRADIENTS].own += bytes;
    }
}

/* What workers talk with, and their gradients: all of them in the exchange, or a few at a time. */
static void count_exchange(const struct train_strategy *strategy,
                           const struct train_memory_question *q, struct train_memory *m)
{
    const struct train_lends lends = train_strategy_lends(strategy, q->options);
    bool elsewhere = lends.gradients || strategy->stages != NULL;
    const struct train_seat *seat = &q->seat;
    uint64_t own, shared;

    coll_memory(seat->workers, seat->shares ? seat->locals : 1, &own, &shared);
    m->of[TRAIN_MEMORY_COMMUNICATION] = (struct train_bytes){(double)own, (double)shared};
    count_space(
        seat, TRAIN_HEAD * sizeof(float) + (elsewhere || q->sizes->sweeps ? 0 : q->sizes->weights),
        m);
    if (lends.gradients && seat->workers > 1)
        count_space(seat, q->sizes->lent[lends.weights], m);
    if (q->accumulates && strategy->stages == NULL)
        m->of[TRAIN_MEMORY_GRADIENTS].own += q->sizes->weights;
}

/* Bytes of the ranges of a group that a worker holds. */
static double held(const struct train_strategy *strategy, const struct train_memory_question *q,
                   enum train_group group)
{
    uint64_t floats = (uint64_t)(q->sizes->weights / sizeof(float));
    struct train_shares shares;
    const struct train_placing placing = {
        .options = q->options,
        .size = q->seat.workers,
        .shares = &shares,
        .floats = {[TRAIN_WEIGHTS] = floats, [TRAIN_SLOTS] = floats},
        .stays = q->sizes->stays,
        .graph = q->sizes->graph};
    struct train_holds holds;
    double sum = 0;

    train_shares_even(&shares, q->seat.workers);
    train_strategy_place(strategy, &placing, q->seat.rank, &holds);
    for (uint32_t i = 0; i < holds.count; i++)
        sum += holds.at[i].group == group ? (double)holds.at[i].count * sizeof(float) : 0;
    return sum;
}

void train_memory_count(const struct train_strategy *strategy,
                        const struct train_memory_question *q, struct train_memory *memory_p)
{
    const struct train_sizes *sizes = q->sizes;
    struct train_memory m = {0};
    double weights = held(strategy, q, TRAIN_WEIGHTS), slot = held(strategy, q, TRAIN_SLOTS);
    bool whole = weights >= sizes->weights && slot >= sizes->weights;

    m.of[TRAIN_MEMORY_WEIGHTS].own = weights + sizes->statistics;
    m.of[TRAIN_MEMORY_SLOTS].own = sizes->slots * slot;
    m.of[TRAIN_MEMORY_SPARE].own = sizes->statistics; /* as they were before a step */
    m.of[TRAIN_MEMORY_ACTIVATIONS].own = sizes->activations;
    m.of[TRAIN_MEMORY_DATA].own = q->data + sizes->batches;
    if (q->saves && q->seat.rank == 0) /* a tensor in the file's order; one that others bring */
        m.of[TRAIN_MEMORY_DATA].own += (whole ? 1 : 2) * sizes->tensor;
    m.of[TRAIN_MEMORY_PROGRAM].own = q->program + PROCESS;
    m.files = q->files;
    count_exchange(strategy, q, &m);
    if (strategy->memory != NULL)
        strategy->memory(q, &m);
    *memory_p = m;
}

double train_memory_sent(const struct train_memory_question *q, enum coll_wire wire)
{
    double n = q->seat.workers, size = wire == COLL_BF16 ? 0.5 : 1;

    return 2 * (n - 1) / n * size * (q->sizes->weights - q->sizes->rows.weights) +
           (n - 1) * q->sizes->rows.message;
}

struct train_bytes train_memory_sum(const struct train_memory *m)
{
    struct train_bytes sum = {0};

    for (int i = 0; i < TRAIN_MEMORY_KINDS; i++) {
        sum.own += m->of[i].own;
        sum.shared += m->of[i].shared;
    }
    return sum;
}

static double part_of(struct train_bytes bytes, int locals)
{
    return bytes.own + bytes.shared / locals;
}

double train_memory_part(const struct train_memory *m, int locals)
{
    return part_of(train_memory_sum(m), locals);
}

void train_memory_text(const struct train_memory *m, int locals, int most, struct base_str *text)
{
    bool told[TRAIN_MEMORY_KINDS] = {false};

    for (int i = 0; i < most; i++) {
        int largest = -1;
        double bytes;

        for (int kind = 0; kind < TRAIN_MEMORY_KINDS; kind++)
            if (!told[kind] &&
                (largest < 0 || part_of(m->of[kind], locals) > part_of(m->of[largest], locals)))
                largest = kind;
        bytes = largest < 0 ? 0 : part_of(m->of[largest], locals);
        if (bytes < 1)
            return;
        told[largest] = true;
        base_str_add(text, "%s%s %sB", i > 0 ? ", " : "", kind_names[largest],
                     base_scaled(bytes).text);
    }
}

json_t *train_memory_json(const struct train_memory *m, int locals)
{
    struct train_bytes sum = train_memory_sum(m);
    json_t *object =
        json_pack("{s:I, s:I}", "worker_bytes", (json_int_t)llround(train_memory_part(m, locals)),
                  "resident_bytes", (json_int_t)llround(sum.own + sum.shared + m->files));

    for (int kind = 0; kind < TRAIN_MEMORY_KINDS; kind++)
        json_object_set_new(object, kind_names[kind],
                            json_integer((json_int_t)llround(part_of(m->of[kind], locals))));
    return object;
}
