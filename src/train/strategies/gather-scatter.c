/* SPDX-License-Identifier: MIT
 *
 * Rank 0 receives the gradients of all workers, sums them in the order of the ranks and sends the
 * sum back to each: the simplest way, in which all bytes go through one worker. As in allreduce the
 * head goes first, to tell waiting apart from communicating.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "nn/simd/simd.h"
#include "train/forecast.h"
#include "train/memory.h"
#include "train/parallel.h"
#include "train/session.h"

static const double PATIENCE = 600; /* seconds */
enum { TO_ROOT = 1, FROM_ROOT };    /* tags */

struct gather_scatter {
    float *received; /* rank 0: (size - 1) gradients */
};

static size_t gather_scatter_gradients(const struct train_exchange *x)
{
    return x->floats - TRAIN_HEAD;
}

static void gather_scatter_memory(const struct train_memory_question *q, struct train_memory *m)
{
    if (q->seat.rank == 0)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += (q->seat.workers - 1) * q->sizes->weights;
}

static base_status gather_scatter_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &s->team.exchange;
    struct gather_scatter *state = s->strategy_state;
    size_t floats = 0;

    if (x->rank != 0 || x->size == 1)
        return BASE_OK;
    TRY(base_mul(gather_scatter_gradients(x), (size_t)x->size - 1, &floats));
    TRY(base_tensor(floats, sizeof(float), "the gradients of all workers", &state->received));
out:
    return st;
}

static void gather_scatter_close(struct train_session *s)
{
    struct gather_scatter *state = s->strategy_state;

    base_free(state->received);
    state->received = NULL;
}

/* Rank 0's part: `back` false: a message from each of the others; true: one to each of them. */
static base_status gather_scatter_exchange(struct train_exchange *x, bool back)
{
    struct gather_scatter *state = x->state;
    struct comm_group *group = coll_group(x->coll);
    struct comm_request requests[COMM_MAX_WORKERS], *list[COMM_MAX_WORKERS];
    size_t count = gather_scatter_gradients(x), bytes = count * sizeof(float);

    for (int i = 1; i < x->size; i++) {
        list[i - 1] = &requests[i - 1];
        if (back)
            comm_send(group, i, COMM_CALLS, FROM_ROOT, x->mine + TRAIN_HEAD, bytes, list[i - 1]);
        else
            comm_receive(group, i, COMM_CALLS, TO_ROOT, state->received + (size_t)(i - 1) * count,
                         bytes, list[i - 1]);
    }
    return comm_wait(group, list, x->size - 1, base_now() + PATIENCE);
}

static base_status gather_scatter_serve(struct train_exchange *x)
{
    base_status st = BASE_OK;
    struct gather_scatter *state = x->state;
    float *sum = x->mine + TRAIN_HEAD;

    TRY(gather_scatter_exchange(x, false));
    for (int i = 1; i < x->size; i++)
        nn_simd()->add(gather_scatter_gradients(x), sum,
                       state->received + (size_t)(i - 1) * gather_scatter_gradients(x), sum);
    TRY(gather_scatter_exchange(x, true));
out:
    return st;
}

static base_status gather_scatter_ask(struct train_exchange *x)
{
    struct comm_group *group = coll_group(x->coll);
    struct comm_request sent, answer, *list[] = {&sent, &answer};
    size_t bytes = gather_scatter_gradients(x) * sizeof(float);
    base_status st = BASE_OK;

    comm_send(group, 0, COMM_CALLS, TO_ROOT, x->mine + TRAIN_HEAD, bytes, &sent);
    TRY(comm_wait(group, list, 1, base_now() + PATIENCE)); /* the answer comes into its place */
    comm_receive(group, 0, COMM_CALLS, FROM_ROOT, x->mine + TRAIN_HEAD, bytes, &answer);
    TRY(comm_wait(group, list + 1, 1, base_now() + PATIENCE));
out:
    return st;
}

static base_status gather_scatter_combine(struct train_exchange *x)
{
    base_status st = BASE_OK;
    enum train_category was;

    TRY(train_exchange_head(x));
    was = train_clock_enter(x->clock, TRAIN_COMMUNICATE);
    if (x->size > 1)
        TRY(x->rank == 0 ? gather_scatter_serve(x) : gather_scatter_ask(x));
    train_clock_enter(x->clock, was);
    x->ranges[0] = (struct train_range){0, x->floats, x->mine};
    x->range_count = 1;
out:
    return st;
}

/* All of it passes the link of rank 0, where each message is written once and read once. */
static void gather_scatter_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    cost->sent = 2.0 * (q->seat.workers - 1) * q->sizes->weights;
    cost->moved = 2 * cost->sent;
}

const struct train_strategy train_strategy_gather_scatter = {
    .name = "gather-scatter",
    .help = "rank 0 receives all gradients and sends their sum back",
    .commit_unit = "step",
    .shares = TRAIN_SHARES_BATCHES,
    .least = 1,
    .memory = gather_scatter_memory,
    .cost = gather_scatter_cost,
    .state_size = sizeof(struct gather_scatter),
    .open = gather_scatter_open,
    .close = gather_scatter_close,
    .leg = train_parallel_leg,
    .sum = &(const struct train_sum){.combine = gather_scatter_combine},
};
