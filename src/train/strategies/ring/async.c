/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/async.h"

#include <string.h>

#include "base/mem.h"
#include "train/strategies/ring/commit.h"
#include "train/strategies/ring/replicas.h"

/* ---- memory ---- */

/* Floats, or as many bytes, of a sample with its label and its id. */
enum { BESIDE_VALUES = 3 };

double ring_async_bytes(const struct nn_graph *graph, double weights, int64_t batch)
{
    size_t sample = nn_shape_values(nn_graph_input(graph)) + BESIDE_VALUES;

    return 2 * weights + RING_OPEN_BATCHES * (double)batch * (double)sample * sizeof(float);
}

base_status ring_async_open(struct train_session *s, int64_t batch)
{
    base_status st = BASE_OK;
    struct ring *ring = ring_of(s);
    size_t samples = (size_t)batch, sample = nn_shape_values(nn_graph_input(s->state.graph));

    if (!ring_is_async(s))
        return BASE_OK;
    for (int i = 0; i < RING_OPEN_BATCHES; i++) {
        struct ring_batch *b = &ring->async.batches[i];

        TRY(base_tensor(samples * sample, sizeof(float), "a batch that is kept", &b->x));
        TRY(base_tensor(samples, sizeof(int32_t), "a batch that is kept", &b->labels));
        TRY(base_tensor(samples, sizeof(float), "a batch that is kept", &b->numbers));
        TRY(base_tensor(samples, sizeof(uint32_t), "a batch that is kept", &b->ids));
    }
    for (int i = 0; i < ring->stages.count; i++) {
        struct ring_stage *stage = &ring->stages.at[i];

        TRY(base_tensor(stage->weights.count, sizeof(float), "former weights", &stage->stash));
        TRY(base_tensor(stage->weights.count, sizeof(float), "summed gradients", &stage->next_sum));
    }
out:
    return st;
}

void ring_async_close(struct ring *ring)
{
    for (int i = 0; i < RING_OPEN_BATCHES; i++) {
        struct ring_batch *b = &ring->async.batches[i];

        base_free(b->x);
        base_free(b->labels);
        base_free(b->numbers);
        base_free(b->ids);
    }
    for (int i = 0; i < ring->stages.count; i++) {
        base_free(ring->stages.at[i].stash);
        base_free(ring->stages.at[i].next_sum);
    }
    ring->async = (struct ring_async){0};
}

/* ---- batches ---- */

static struct ring_run *ring_async_run(struct ring_async *a, int64_t batch)
{
    return &a->runs[batch % RING_OPEN_BATCHES];
}

/* The batch is the loader's until the next one is asked for. */
static void ring_batch_keep(struct ring_batch *kept, const struct data_batch *b, size_t sample)
{
    kept->batch = *b;
    memcpy(kept->x, b->x, b->count * sample * sizeof *kept->x);
    memcpy(kept->ids, b->ids, b->count * sizeof *kept->ids);
    memcpy(kept->labels, b->labels, b->count * sizeof *kept->labels);
    if (b->numbers != NULL)
        memcpy(kept->numbers, b->numbers, b->count * sizeof *kept->numbers);
    kept->batch.x = kept->x;
    kept->batch.ids = kept->ids;
    kept->batch.labels = kept->labels;
    kept->batch.numbers = b->numbers != NULL ? kept->numbers : NULL;
}

/* The weights that the next batch is computed with, as they are now. */
static void ring_async_stash(struct train_session *s)
{
    struct ring_stages *r = &ring_of(s)->stages;

    for (int i = 0; i < r->count; i++) {
        const struct nn_range *range = &r->at[i].weights;

        if (range->count > 0)
            memcpy(r->at[i].stash,
                   train_state_at(&s->state, TRAIN_WEIGHTS, 0, range->from, range->count),
                   range->count * sizeof(float));
    }
}

void ring_async_begin(struct train_session *s, const struct data_batch *batch)
{
    struct ring *ring = ring_of(s);
    struct ring_async *a = &ring->async;
    struct ring_run *run = ring_async_run(a, a->begun), *older = ring_async_run(a, a->begun + 1);

    if (a->open == 0)
        ring_async_stash(s);
    *run = (struct ring_run){.stages = &ring->stages,
                             .session = s,
                             .batch = batch,
                             .before = a->pieces,
                             .older = a->open > 0 ? older : NULL};
    ring_run_begin(run);
    ring->staleness[a->open > 0] += ring_stages_judge(&ring->stages);
    a->pieces += run->rule.pieces;
    a->begun++;
    a->open++;
}

/* Takes the next batch and begins it. The position is that of the oldest batch that is open. */
static base_status ring_async_take(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring_async *a = &ring_of(s)->async;
    struct ring_batch *kept = &a->batches[a->begun % RING_OPEN_BATCHES];
    int64_t ahead = a->open > 0 ? ring_async_run(a, a->begun - 1)->batch->whole : 0;
    struct train_outcome none; /* it is known when the batch is complete */
    struct data_batch batch;

    train_clock_enter(&s->clock, TRAIN_DATA);
    s->state.position.cursor += ahead;
    st = s->task->next(s, &batch);
    s->state.position.cursor -= ahead;
    TRY(st);
    ring_batch_keep(kept, &batch, nn_shape_values(nn_graph_input(s->state.graph)));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    TRY(s->task->compute(s, &kept->batch, &none));
out:
    return st;
}

/* ---- steps ---- */

/* Completes the older batch, and works on the next one meanwhile where there is `more`. */
static base_status ring_async_compute(struct train_session *s, struct train_step *step, bool more)
{
    base_status st = BASE_OK;
    struct ring_async *a = &ring_of(s)->async;
    struct ring_run *run;

    train_step_begin(s, step);
    if (a->open == 0)
        TRY(ring_async_take(s));
    if (more)
        TRY(ring_async_take(s));
    train_fault_at(&s->fault, "data", s->team.exchange.step);
    run = ring_async_run(a, a->begun - a->open);
    TRY(ring_run_complete(run, more ? ring_async_run(a, a->begun - 1) : NULL));
    step->batch = *run->batch;
    step->outcome = run->outcome;
out:
    return st;
}

static void ring_async_update(struct train_session *s, const struct train_step *step)
{
    struct ring *ring = ring_of(s);
    struct ring_async *a = &ring->async;

    ring_async_stash(s);
    ring_update_own(s, &step->update);
    for (int i = 0; i < ring->stages.count; i++) {
        struct ring_stage *stage = &ring->stages.at[i];
        float *sum = stage->sum;

        stage->sum = stage->next_sum;
        stage->next_sum = sum;
    }
    ring_async_run(a, a->begun - 1)->older = NULL;
    a->open--;
}

static base_status ring_async_step(struct train_session *s, bool more)
{
    base_status st = BASE_OK;
    struct train_step step;

    TRY(ring_async_compute(s, &step, more));
    TRY(ring_hear(s));
    train_fault_at(&s->fault, "update", s->team.exchange.step);
    ring_async_update(s, &step);
    train_step_advance(s, &step);
    train_step_end(s, &step);
    ring_report(s, &step);
    train_fault_at(&s->fault, "slice", s->team.exchange.step);
out:
    if (st != BASE_OK)
        train_step_undo(s, &step, st);
    return st;
}

base_status ring_async_steps(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK, heard;
    struct ring *ring = ring_of(s);

    while (st == BASE_OK &&
           (ring->async.open > 0 || (s->state.position.step < goal && !train_session_halts(s))))
        st = ring_async_step(s, s->state.position.step + 1 < goal && !train_session_halts(s));
    heard = ring_hear(s);
    ring->async.open = 0;
    ring->doubtful = false; /* no worker has a copy by which a step could be made */
    return st == BASE_OK || heard == BASE_ERR_DIVERGED ? heard : st;
}

json_t *ring_async_figures(const struct train_session *s)
{
    const struct ring *ring = ring_of(s);

    if (!ring_is_async(s))
        return json_object();
    return json_pack("{s:[I, I]}", "staleness", (json_int_t)ring->staleness[0],
                     (json_int_t)ring->staleness[1]);
}
