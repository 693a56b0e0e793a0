/* SPDX-License-Identifier: MIT
 *
 * A message: for every table up to `room` entries, the number of a row (uint32_t) and the row's
 * floats; END in place of a number ends them early.
 */
#include "train/touched.h"

#include <string.h>

#include "base/mem.h"
#include "train/session.h"

static const uint32_t END = UINT32_MAX;

static size_t entry_floats(const struct train_table *t)
{
    return 1 + t->width;
}

void train_touched_room(struct train_touched *touched, uint32_t share)
{
    touched->message = 0;
    for (int i = 0; i < touched->count; i++) {
        struct train_table *t = &touched->tables[i];

        t->room = share < t->rows ? share : t->rows;
        touched->message += t->room * entry_floats(t);
    }
}

void train_touched_plan(const struct nn_graph *graph, int workers, uint32_t share,
                        struct train_touched *plan_p)
{
    struct train_touched p = {0};
    size_t params = nn_graph_params(graph), i = 0;

    for (; i < params && i < TRAIN_MAX_TABLES && nn_graph_param(graph, i)->sparse; i++) {
        const struct nn_tensor *tensor = nn_graph_param(graph, i);

        p.tables[p.count++] = (struct train_table){.offset = tensor->offset,
                                                   .width = (size_t)tensor->dims[1],
                                                   .rows = (uint32_t)tensor->dims[0]};
    }
    train_touched_room(&p, share);
    p.floats = i < params ? nn_graph_param(graph, i)->offset : nn_graph_weight_floats(graph);
    /* A worker sends its message to each other one; of whole gradients, a part of 1/workers to each
     * other one, and the sums of another such part. */
    if (workers == 1 || p.message * (size_t)workers >= 2 * p.floats)
        p = (struct train_touched){0};
    *plan_p = p;
}

double train_touched_memory(const struct train_touched *plan, int workers)
{
    return (1.0 + workers) * (double)plan->message * sizeof(float);
}

/* The most samples that any share of a batch has. */
static uint32_t largest_share(const struct train_shares *shares, uint32_t whole)
{
    uint32_t most = 0;

    for (int rank = 0; rank < shares->size; rank++) {
        const uint32_t samples = data_share_most(train_shares_of(shares, rank), whole);

        most = samples > most ? samples : most;
    }
    return most;
}

base_status train_touched_open(struct train_touched *touched, struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &s->team.exchange;
    const uint32_t whole = train_session_whole(s, s->plan.batch);
    size_t all = 0;

    train_touched_plan(s->state.graph, x->size, largest_share(&s->team.shares, whole), touched);
    if (touched->floats == 0)
        return BASE_OK;
    touched->shares = &s->team.shares;
    touched->whole = whole;
    if (train_shares_may_change(s->job->shares) ||
        s->slow.policy.action == TRAIN_SLOW_REBALANCE) /* one worker may come to do nearly all */
        train_touched_room(touched, whole);
    TRY(base_mul(touched->message, (size_t)x->size, &all));
    TRY(base_tensor(touched->message, sizeof(float), "rows of gradients", &touched->mine));
    TRY(base_tensor(all, sizeof(float), "rows of gradients of all workers", &touched->all));
    x->touched = touched;
out:
    return st;
}

void train_touched_close(struct train_touched *touched)
{
    base_free(touched->mine);
    base_free(touched->all);
    *touched = (struct train_touched){0};
}

static bool is_touched(const float *row, size_t width)
{
    bool is = false;

    for (size_t i = 0; i < width; i++)
        is |= row[i] != 0; /* true of NaN: a divergence is seen by all workers */
    return is;
}

static base_status pack_table(const struct train_table *t, float *gradients, float *message)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->rows; i++) {
        float *row = gradients + t->offset + i * t->width;

        if (!is_touched(row, t->width))
            continue;
        if (count == t->room)
            return base_fail(BASE_ERR_INTERNAL, "a share has touched more than %u rows", t->room);
        memcpy(message, &i, sizeof i);
        memcpy(message + 1, row, t->width * sizeof *row);
        memset(row, 0, t->width * sizeof *row);
        message += entry_floats(t);
        count++;
    }
    if (count < t->room)
        memcpy(message, &END, sizeof END);
    return BASE_OK;
}

base_status train_touched_pack(const struct train_touched *touched, float *gradients,
                               float *message)
{
    base_status st = BASE_OK;

    for (int i = 0; i < touched->count && st == BASE_OK; i++) {
        const struct train_table *t = &touched->tables[i];

        st = pack_table(t, gradients, message);
        message += t->room * entry_floats(t);
    }
    return st;
}

static base_status add_table(const struct train_table *t, int rank, const float *message,
                             float *gradients)
{
    for (uint32_t n = 0; n < t->room; n++, message += entry_floats(t)) {
        uint32_t row;
        float *sum;

        memcpy(&row, message, sizeof row);
        if (row == END)
            break;
        if (row >= t->rows)
            return base_fail(BASE_ERR_DATA, "rank %d sent a gradient of row %u, but there are %u",
                             rank, row, t->rows);
        sum = gradients + t->offset + row * t->width;
        for (size_t i = 0; i < t->width; i++)
            sum[i] += message[1 + i];
    }
    return BASE_OK;
}

base_status train_touched_add(const struct train_touched *touched, int rank, const float *message,
                              float *gradients)
{
    base_status st = BASE_OK;

    for (int i = 0; i < touched->count && st == BASE_OK; i++) {
        const struct train_table *t = &touched->tables[i];

        st = add_table(t, rank, message, gradients);
        message += t->room * entry_floats(t);
    }
    return st;
}

base_status train_touched_sum(struct train_touched *touched, struct train_exchange *x)
{
    base_status st = BASE_OK;
    float *gradients = x->mine + TRAIN_HEAD;

    train_touched_room(touched, largest_share(touched->shares, touched->whole));
    TRY(train_touched_pack(touched, gradients, touched->mine));
    train_fault_at(x->fault, "rows", x->step);
    TRY(coll_all_gather(x->coll, touched->mine, touched->message * sizeof(float), touched->all));
    for (int rank = 0; rank < x->size; rank++)
        TRY(train_touched_add(touched, rank, touched->all + (size_t)rank * touched->message,
                              gradients));
out:
    return st;
}
