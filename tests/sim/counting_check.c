/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sim/counting.h"
#include "sim/hosts.h"

struct sim_counting sim_counting;

void sim_counting_order(int64_t seed, int64_t epoch, uint32_t *order)
{
    struct base_rng rng = base_rng_of((uint64_t)seed, BASE_STREAM_SHUFFLE, 0, (uint32_t)epoch, 0);
    uint32_t count = sim_counting.count[DATA_TRAIN];

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    base_rng_shuffle(&rng, order, count);
}

size_t sim_counting_stride(void)
{
    enum { ALIGN = 16 }; /* as nn/graph.c has it */

    return (sim_counting.count[DATA_TRAIN] + ALIGN - 1) / ALIGN * ALIGN;
}

static void check_layer(const struct train_position *position, const uint32_t *order, int layer,
                        const float *all, float most, const char *where)
{
    const float *weights = all + (size_t)layer * sim_counting_stride();

    for (uint32_t i = 0; i < sim_counting.count[DATA_TRAIN]; i++) {
        float times = (float)(position->epoch + (i < position->cursor));

        if (isnan(weights[order[i]]))
            continue;
        sim_check(fabsf(weights[order[i]] - times) <= most,
                  "%s: at step %" PRId64 " (epoch %" PRId64 ", cursor %" PRId64
                  ") sample %u is %g times in the weights of layer %d and not %g",
                  where, position->step, position->epoch, position->cursor, order[i],
                  (double)weights[order[i]], layer, (double)times);
    }
}

void sim_counting_check(const struct train_job *job, const struct train_position *position,
                        const float *weights, bool exact, const char *where)
{
    uint32_t count = sim_counting.count[DATA_TRAIN];
    uint32_t *order = base_calloc(count, sizeof *order);

    sim_counting_order(job->seed, position->epoch, order);
    for (int i = 0; i < sim_counting.layers; i++)
        check_layer(position, order, i, weights, exact ? 0 : 0.01f, where);
    base_free(order);
}

/* Between the rounds of local-sgd and downpour each worker has weights of its own; an update of ps
 * by a block is of that block's mean gradient, which is rounded. */
bool sim_counting_is_exact(const struct train_session *s)
{
    return strcmp(s->strategy->name, "local-sgd") != 0 &&
           strcmp(s->strategy->name, "downpour") != 0 && strcmp(s->strategy->name, "ps") != 0;
}

/* The weights that this worker holds, NAN for the others; base_free. */
static float *own_weights(const struct train_session *s)
{
    float *weights = base_calloc(s->state.floats, sizeof *weights);

    for (size_t i = 0; i < s->state.floats; i++)
        weights[i] = NAN;
    train_state_get(&s->state, TRAIN_WEIGHTS, 0, 0, s->state.floats, weights);
    return weights;
}

/* A leg was left half-way: so many samples after the cursor are in the weights, too. They are taken
 * out here, and the rest is checked as ever. */
static void take_out_ahead(const struct train_session *s, float *weights, const char *where)
{
    const struct train_position *p = &s->state.position;
    uint32_t count = s->count[DATA_TRAIN];
    uint32_t *order = base_calloc(count, sizeof *order);
    int64_t found = 0;
    bool whole = true;

    sim_counting_order(s->job->seed, p->epoch, order);
    for (int64_t i = p->cursor; i < count; i++) {
        float *weight = &weights[order[i]];

        whole &= !isnan(*weight);
        if (*weight > (float)p->epoch + 0.5f) {
            *weight -= 1;
            found++;
        }
    }
    sim_check(!whole || found == s->state.ahead,
              "%s: %" PRId64 " samples after the cursor are in the weights and not %" PRId64, where,
              found, s->state.ahead);
    base_free(order);
}

void sim_counting_check_state(const struct train_session *s, const char *where)
{
    float *weights = own_weights(s);

    if (s->state.ahead > 0)
        take_out_ahead(s, weights, where);
    sim_counting_check(s->job, &s->state.position, weights, sim_counting_is_exact(s), where);
    base_free(weights);
}

void sim_counting_note(const struct train_session *s)
{
    struct sim_worker *me = sim_worker_self();
    struct train_state *notes;
    float *weights;

    if (!s->whole)
        return;
    if (me->notes == NULL) {
        me->notes = notes = base_calloc(1, sizeof *notes);
        notes->weights = base_calloc(s->state.floats, sizeof(float));
    }
    notes = me->notes;
    notes->position = s->state.position;
    weights = own_weights(s);
    memcpy(notes->weights, weights, s->state.floats * sizeof(float));
    base_free(weights);
}
