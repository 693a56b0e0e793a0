/* SPDX-License-Identifier: MIT */
#include "train/lending.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/engine.h"

/* Slice rank - i, around, of the model's floats. */
static struct nn_range slice_of(const struct train_session *s, int i)
{
    const struct train_exchange *x = &s->team.exchange;
    struct nn_range slice;

    coll_slice(s->state.floats, (x->rank + x->size - i) % x->size, x->size, &slice.from,
               &slice.count);
    return slice;
}

/* Floats of the slices that this worker keeps before `end`. */
static size_t kept_before(const struct train_lending *l, const struct train_session *s, size_t end)
{
    size_t floats = 0;

    for (int i = 0; i < l->copies; i++) {
        struct nn_range slice = slice_of(s, i);

        floats += slice.from < end ? slice.count : 0;
    }
    return floats;
}

static base_status open_sums(struct train_lending *l, const struct train_session *s)
{
    base_status st = BASE_OK;

    TRY(base_tensor(kept_before(l, s, s->state.floats), sizeof(float), "summed gradients",
                    &l->memory));
    for (int i = 0; i < l->copies; i++)
        l->sums[i] = l->memory + kept_before(l, s, slice_of(s, i).from);
out:
    return st;
}

const float *train_lending_sums(const struct train_lending *l, const struct train_session *s,
                                size_t from)
{
    return l->memory + kept_before(l, s, from);
}

static base_status open_pool(struct train_lending *l, const struct train_exchange *x,
                             struct train_lends what)
{
    base_status st = BASE_OK;
    size_t *floats = base_calloc((size_t)l->count, sizeof *floats);

    for (int i = 0; i < l->count; i++)
        floats[i] = l->groups[i].weights.count;
    train_pool_plan(&l->pool, floats, l->count, what.weights, what.gradients);
    TRY(coll_space_open(x->coll, "lent", l->pool.floats, &l->space));
    TRY(comm_engine_begin(coll_group(x->coll)));
out:
    base_free(floats);
    return st;
}

base_status train_lending_open(struct train_lending *l, struct train_session *s,
                               struct train_lends what, int copies)
{
    base_status st = BASE_OK;
    const struct nn_graph *graph = s->state.graph;

    *l = (struct train_lending){.copies = copies};
    l->groups = nn_graph_groups(graph, 0, nn_graph_layers(graph), &l->count);
    l->summing = base_calloc((size_t)l->count, sizeof *l->summing);
    TRY(open_sums(l, s));
    if (s->team.exchange.size > 1)
        TRY(open_pool(l, &s->team.exchange, what));
out:
    return st;
}

void train_lending_close(struct train_lending *l, struct train_session *s)
{
    if (s->team.group != NULL)
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group, which is known */
    coll_space_close(l->space);
    train_pool_fini(&l->pool);
    base_free(l->memory);
    base_free(l->summing);
    base_free(l->groups);
    *l = (struct train_lending){0};
}

/* Until the engine has done this and all before it. Moved, not entered: entering asks the kernel
 * for the thread's CPU time, and this is called for every group. */
static base_status await(struct train_lending *l, struct train_session *s, uint64_t ticket)
{
    double began = base_now(), seconds;
    float *result;
    base_status st = coll_async_wait(s->team.exchange.coll, ticket, &result);

    seconds = base_now() - began;
    l->exposed += seconds;
    train_clock_move(&s->clock, TRAIN_COMMUNICATE, seconds);
    return st;
}

static struct coll_owned range_of(const struct train_lending *l, const struct train_session *s,
                                  int group)
{
    const struct nn_range *range = &l->groups[group].weights;

    return (struct coll_owned){s->state.floats, range->from, range->count, l->copies};
}

/* Starts to gather a group's weights, unless that is under way. */
static base_status fetch(struct train_lending *l, struct train_session *s, int group, bool backward)
{
    base_status st = BASE_OK;
    const struct coll_owned range = range_of(l, s, group);
    const struct nn_range own = slice_of(s, 0);
    size_t at = backward ? l->pool.backward[group] : l->pool.forward[group];
    const float *mine = train_state_at(&s->state, TRAIN_WEIGHTS, 0, own.from, own.count);

    if (l->coming.ticket != 0 && l->coming.group == group && l->coming.backward == backward)
        return BASE_OK;
    TRY(coll_start_gather_owned(s->team.exchange.coll, l->space, at, &range, mine, &l->last));
    l->coming.group = group;
    l->coming.backward = backward;
    l->coming.ticket = l->last;
out:
    return st;
}

static base_status borrow_weights(struct train_lending *l, struct train_session *s,
                                  struct nn_loan *loan)
{
    base_status st = BASE_OK;
    uint64_t ticket;

    TRY(fetch(l, s, loan->group, loan->backward));
    ticket = l->coming.ticket;
    if (loan->next >= 0)
        TRY(fetch(l, s, loan->next, loan->backward));
    else
        l->coming.ticket = 0;
    TRY(await(l, s, ticket));
    loan->weights = coll_space_mine(l->space) +
                    (loan->backward ? l->pool.backward[loan->group] : l->pool.forward[loan->group]);
out:
    return st;
}

/* The gradients of the group before may still be summed, those of earlier ones may not: their
 * memory is lent again. */
static base_status borrow_gradients(struct train_lending *l, struct train_session *s,
                                    struct nn_loan *loan)
{
    base_status st = BASE_OK;
    int earlier = loan->group + 2;

    if (earlier < l->count && l->summing[earlier] != 0)
        TRY(await(l, s, l->summing[earlier]));
    loan->gradients = coll_space_mine(l->space) + l->pool.gradients[loan->group];
out:
    return st;
}

base_status train_lending_borrow(struct train_lending *l, struct train_session *s,
                                 struct nn_loan *loan)
{
    base_status st = BASE_OK;
    const struct nn_range *range = &l->groups[loan->group].weights;

    if (l->space == NULL) {
        loan->weights = train_state_at(&s->state, TRAIN_WEIGHTS, 0, range->from, range->count);
        loan->gradients = l->memory + range->from;
        return BASE_OK;
    }
    if (l->pool.forward != NULL)
        TRY(borrow_weights(l, s, loan));
    if (loan->backward && l->pool.gradients != NULL)
        TRY(borrow_gradients(l, s, loan));
out:
    return st;
}

base_status train_lending_give_back(struct train_lending *l, struct train_session *s,
                                    const struct nn_loan *loan, bool complete)
{
    base_status st = BASE_OK;
    const struct coll_owned range = range_of(l, s, loan->group);

    if (l->space == NULL || !loan->backward || l->pool.gradients == NULL || !complete)
        return BASE_OK;
    TRY(coll_start_reduce_owned(s->team.exchange.coll, l->space, l->pool.gradients[loan->group],
                                &range, l->sums, &l->last));
    l->summing[loan->group] = l->last;
out:
    return st;
}

base_status train_lending_finish(struct train_lending *l, struct train_session *s)
{
    base_status st = BASE_OK;
    const struct coll *coll = s->team.exchange.coll;
    double hidden;

    if (l->space == NULL || l->last == 0)
        return BASE_OK;
    TRY(await(l, s, l->last));
    for (int i = 0; i < l->count; i++)
        l->summing[i] = 0;
    hidden = coll_async_busy(coll) - l->busy - l->exposed;
    s->clock.overlapped += hidden > 0 ? hidden : 0;
    l->busy = coll_async_busy(coll);
    l->exposed = 0;
out:
    return st;
}
