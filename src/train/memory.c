/* SPDX-License-Identifier: MIT */
#include "train/memory.h"

#include <math.h>
#include <stdlib.h>

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

/* The exchange's space: in memory that the workers of a host share there is room for the gradients
 * of each, and for the sums (coll_space_open). */
static void count_exchange(const struct train_memory_question *q, struct train_memory *m)
{
    const struct train_seat *seat = &q->seat;
    struct train_bytes *gradients = &m->of[TRAIN_MEMORY_GRADIENTS];
    struct train_bytes *communication = &m->of[TRAIN_MEMORY_COMMUNICATION];
    int sharing = seat->shares ? seat->locals : 1;
    double space = q->sizes->weights + TRAIN_HEAD * sizeof(float);
    uint64_t own, shared;

    coll_memory(seat->workers, sharing, &own, &shared);
    *communication = (struct train_bytes){(double)own, (double)shared};
    if (sharing > 1) {
        gradients->shared = sharing * space;
        communication->shared += space;
    } else {
        gradients->own = space;
    }
    if (q->accumulates)
        gradients->own += q->sizes->weights;
}

void train_memory_count(const struct train_strategy *strategy,
                        const struct train_memory_question *q, struct train_memory *memory_p)
{
    const struct train_sizes *sizes = q->sizes;
    struct train_memory m = {0};

    m.of[TRAIN_MEMORY_WEIGHTS].own = sizes->weights + sizes->statistics;
    m.of[TRAIN_MEMORY_SLOTS].own = sizes->slots * sizes->weights;
    m.of[TRAIN_MEMORY_SPARE].own = sizes->statistics; /* as they were before a step */
    m.of[TRAIN_MEMORY_ACTIVATIONS].own = sizes->activations;
    m.of[TRAIN_MEMORY_DATA].own = q->data + sizes->batches;
    if (q->saves && q->seat.rank == 0)
        m.of[TRAIN_MEMORY_DATA].own += sizes->tensor;
    m.of[TRAIN_MEMORY_PROGRAM].own = q->program + PROCESS;
    m.files = q->files;
    count_exchange(q, &m);
    if (strategy->memory != NULL)
        strategy->memory(q, &m);
    *memory_p = m;
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
