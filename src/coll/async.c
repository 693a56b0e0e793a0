/* SPDX-License-Identifier: MIT
 *
 * Operations on the engine of the group (comm/engine.h). An asynchronous one is an order
 * with a place in a queue and a ticket, its number from 1. A synchronous operation is an order that
 * is waited for at once, or, without an engine, a call. After the first failure the group is void
 * and what is queued ends with the same code.
 *
 * An operation has a deadline of its own, hence waiting for its ticket needs none.
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll_private.h"

enum { QUEUE = 256 }; /* operations that may be under way or not yet waited for */

typedef base_status owned_order(struct coll *c, struct coll_call *call,
                                const struct coll_keepers *k);

struct operation {
    struct comm_task task;
    struct coll *c;
    struct coll_call call;
    struct coll_sum sum;
    float scale[COMM_MAX_WORKERS];
    /* Of a range that is divided between ranks; NULL: an all-reduce. */
    owned_order *owned;
    struct coll_keepers keepers;
};

struct coll_async {
    struct operation queue[QUEUE];
    uint64_t started;
    _Atomic double busy;
};

static base_status run_one(struct operation *op)
{
    if (op->call.count == 0)
        return BASE_OK;
    if (op->owned != NULL)
        return op->owned(op->c, &op->call, &op->keepers);
    if (op->c->world.size > 1)
        return coll_run(op->c, &op->call);
    if (op->sum.scale != NULL)
        coll_scale(op->call.count, op->sum.scale[0], op->call.x);
    return BASE_OK;
}

static base_status run_timed(void *context)
{
    struct operation *op = context;
    _Atomic double *busy = &op->c->async->busy;
    double start = base_now();
    base_status st = run_one(op);

    atomic_store_explicit(busy,
                          atomic_load_explicit(busy, memory_order_relaxed) + base_now() - start,
                          memory_order_relaxed);
    return st;
}

/* Tickets are for the thread that computes: the engine's own would wait for itself. */
static base_status find_engine(const struct coll *c, struct comm_engine **engine_p)
{
    *engine_p = comm_group_engine(c->group);
    if (*engine_p == NULL)
        return base_fail(BASE_ERR_INTERNAL, "the group has no engine (comm_engine_begin)");
    if (comm_engine_is_here(*engine_p))
        return base_fail(BASE_ERR_INTERNAL, "an order starts or awaits another one");
    return BASE_OK;
}

/* The next place in the queue, once it is free. */
static struct operation *next_operation(struct coll *c, struct comm_engine *engine)
{
    struct operation *op;

    if (c->async == NULL)
        c->async = base_calloc(1, sizeof *c->async);
    op = &c->async->queue[c->async->started % QUEUE];
    if (c->async->started >= QUEUE)
        base_ignore(comm_engine_wait(engine, &op->task, INFINITY));
    op->c = c;
    op->owned = NULL;
    return op;
}

static void start(struct operation *op, struct comm_engine *engine, uint64_t *ticket_p)
{
    *ticket_p = ++op->c->async->started;
    comm_engine_order(engine, run_timed, op, &op->task);
}

base_status coll_start_all_reduce(struct coll *c, struct coll_space *space, size_t offset,
                                  size_t count, const struct coll_sum *sum, uint64_t *ticket_p)
{
    base_status st = BASE_OK;
    struct comm_engine *engine;
    struct coll_call call;
    struct operation *op;

    *ticket_p = 0;
    TRY(find_engine(c, &engine));
    TRY(coll_space_call(space, offset, count, sum, &call));
    op = next_operation(c, engine);
    op->call = call;
    op->sum = *call.sum;
    op->call.sum = &op->sum;
    if (op->sum.scale != NULL) { /* the caller's may be gone by then */
        memcpy(op->scale, op->sum.scale, (size_t)c->world.size * sizeof *op->scale);
        op->sum.scale = op->scale;
    }
    start(op, engine, ticket_p);
out:
    return st;
}

static base_status check_owned(const struct coll *c, const struct coll_owned *range)
{
    if (range->from > range->whole || range->count > range->whole - range->from)
        return base_fail(BASE_ERR_INTERNAL, "[%zu, %zu + %zu) is not inside a vector of %zu floats",
                         range->from, range->from, range->count, range->whole);
    if (range->copies < 1 || range->copies > c->world.size)
        return base_fail(BASE_ERR_INTERNAL, "%d copies of a slice, but there are %d ranks",
                         range->copies, c->world.size);
    return BASE_OK;
}

static base_status start_owned(struct coll *c, struct coll_space *space, size_t offset,
                               const struct coll_keepers *keepers, owned_order *run,
                               uint64_t *ticket_p)
{
    base_status st = BASE_OK;
    struct comm_engine *engine;
    struct coll_call call;
    struct operation *op;

    *ticket_p = 0;
    TRY(find_engine(c, &engine));
    TRY(coll_space_call(space, offset, keepers->range.count, NULL, &call));
    TRY(check_owned(c, &keepers->range));
    op = next_operation(c, engine);
    op->call = call;
    op->keepers = *keepers;
    op->owned = run;
    start(op, engine, ticket_p);
out:
    return st;
}

base_status coll_start_reduce_owned(struct coll *c, struct coll_space *space, size_t offset,
                                    const struct coll_owned *range, float *const *kept,
                                    uint64_t *ticket_p)
{
    struct coll_keepers keepers = {.range = *range};

    for (int i = 0; i < range->copies && i < COMM_MAX_WORKERS; i++)
        keepers.kept[i] = kept[i];
    return start_owned(c, space, offset, &keepers, coll_reduce_owned, ticket_p);
}

base_status coll_start_gather_owned(struct coll *c, struct coll_space *space, size_t offset,
                                    const struct coll_owned *range, const float *mine,
                                    uint64_t *ticket_p)
{
    struct coll_keepers keepers = {.range = *range, .kept = {(float *)mine}}; /* is only read */

    return start_owned(c, space, offset, &keepers, coll_gather_owned, ticket_p);
}

base_status coll_async_wait(struct coll *c, uint64_t ticket, float **result_p)
{
    const uint64_t started = c->async != NULL ? c->async->started : 0;
    struct comm_engine *engine;
    base_status st = BASE_OK;

    *result_p = NULL;
    TRY(find_engine(c, &engine));
    if (ticket == 0 || ticket > started || ticket + QUEUE <= started)
        TRY(base_fail(BASE_ERR_INTERNAL, "no operation has ticket %llu",
                      (unsigned long long)ticket));
    TRY(comm_engine_wait(engine, &c->async->queue[(ticket - 1) % QUEUE].task, INFINITY));
    *result_p = c->async->queue[(ticket - 1) % QUEUE].call.result;
out:
    return st;
}

double coll_async_busy(const struct coll *c)
{
    return c->async == NULL ? 0 : atomic_load_explicit(&c->async->busy, memory_order_relaxed);
}

void coll_async_close(struct coll *c)
{
    struct comm_engine *engine = comm_group_engine(c->group);
    struct coll_async *a = c->async;

    if (a != NULL && engine != NULL) /* the last one ends last */
        base_ignore(comm_engine_wait(engine, &a->queue[(a->started - 1) % QUEUE].task, INFINITY));
    base_free(a);
}

base_status coll_perform(struct coll *c, comm_order *operation, void *context)
{
    struct comm_engine *engine = comm_group_engine(c->group);
    struct comm_task task;

    if (engine == NULL || comm_engine_is_here(engine))
        return operation(context);
    comm_engine_order(engine, operation, context, &task);
    return comm_engine_wait(engine, &task, INFINITY);
}
