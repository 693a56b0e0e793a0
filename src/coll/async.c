/* SPDX-License-Identifier: MIT
 *
 * The communication thread: a queue of all-reduces, run one after the other in the order they were
 * started. Between coll_async_begin and coll_async_end the group is that thread's alone. Behind the
 * first failure the group is void: what is still queued ends at once with the same code, so nobody
 * waits for an operation of a view that is gone.
 *
 * A ticket is the number of an operation, from 1. An operation has a deadline of its own, hence
 * whoever waits for its ticket waits no longer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "coll/coll_private.h"

enum { QUEUE = 256 }; /* operations that may be under way or not yet waited for */

struct operation {
    struct coll_call call;
    struct coll_sum sum;
    float scale[COMM_MAX_WORKERS];
};

struct coll_async {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* something was started; something is complete */
    struct operation queue[QUEUE];
    uint64_t started, complete;
    bool ends;
    base_status failure;
    char message[256];
    _Atomic double busy;
};

static base_status run_one(struct coll *c, struct operation *op)
{
    if (c->world.size > 1)
        return coll_run(c, COLL_ALL_REDUCE, &op->call);
    if (op->sum.scale != NULL)
        coll_scale(op->call.count, op->sum.scale[0], op->call.x);
    return BASE_OK;
}

/* Runs with the lock held but for the operation itself. */
static void next(struct coll *c, struct coll_async *a)
{
    struct operation *op = &a->queue[a->complete % QUEUE];
    base_status st = a->failure;
    double start = base_now();

    if (st == BASE_OK && op->call.count > 0) {
        pthread_mutex_unlock(&a->lock);
        st = run_one(c, op);
        atomic_store_explicit(
            &a->busy, atomic_load_explicit(&a->busy, memory_order_relaxed) + base_now() - start,
            memory_order_relaxed);
        pthread_mutex_lock(&a->lock);
    }
    if (st != BASE_OK && a->failure == BASE_OK) {
        a->failure = st;
        snprintf(a->message, sizeof a->message, "%s", base_message());
    }
    a->complete++;
    pthread_cond_broadcast(&a->less);
}

static void *serve(void *argument)
{
    struct coll *c = argument;
    struct coll_async *a = c->async;

    pthread_mutex_lock(&a->lock);
    for (;;) {
        if (a->complete < a->started)
            next(c, a);
        else if (a->ends)
            break;
        else
            pthread_cond_wait(&a->more, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* The thread's failure as one of the caller's; with the lock held. */
static base_status failed(const struct coll_async *a)
{
    return a->failure == BASE_OK ? BASE_OK : base_fail(a->failure, "%s", a->message);
}

base_status coll_async_begin(struct coll *c)
{
    struct coll_async *a;
    int code;

    if (c->async != NULL)
        return base_fail(BASE_ERR_INTERNAL, "the communication thread is there already");
    a = base_calloc(1, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    pthread_cond_init(&a->less, NULL);
    c->async = a;
    if ((code = pthread_create(&a->thread, NULL, serve, c)) == 0)
        return BASE_OK;
    c->async = NULL;
    base_free(a);
    return base_fail(BASE_ERR_IO, "no thread for communication: %s", strerror(code));
}

base_status coll_start_all_reduce(struct coll *c, struct coll_space *space, size_t offset,
                                  size_t count, const struct coll_sum *sum, uint64_t *ticket_p)
{
    base_status st = BASE_OK;
    struct coll_async *a = c->async;
    struct coll_call call;
    struct operation *op;

    *ticket_p = 0;
    if (a == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "there is no communication thread (coll_async_begin)"));
    TRY(coll_space_call(space, offset, count, sum, &call));
    pthread_mutex_lock(&a->lock);
    while (a->started - a->complete == QUEUE)
        pthread_cond_wait(&a->less, &a->lock);
    op = &a->queue[a->started % QUEUE];
    op->call = call;
    op->sum = *call.sum;
    op->call.sum = &op->sum;
    if (op->sum.scale != NULL) { /* the caller's may be gone by then */
        memcpy(op->scale, op->sum.scale, (size_t)c->world.size * sizeof *op->scale);
        op->sum.scale = op->scale;
    }
    *ticket_p = ++a->started;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
out:
    return st;
}

base_status coll_async_wait(struct coll *c, uint64_t ticket, float **result_p)
{
    struct coll_async *a = c->async;
    base_status st = BASE_OK;

    *result_p = NULL;
    if (a == NULL)
        return base_fail(BASE_ERR_INTERNAL, "there is no communication thread (coll_async_begin)");
    pthread_mutex_lock(&a->lock);
    if (ticket == 0 || ticket > a->started || ticket + QUEUE <= a->started)
        st = base_fail(BASE_ERR_INTERNAL, "no operation has ticket %llu",
                       (unsigned long long)ticket);
    while (st == BASE_OK && a->complete < ticket)
        pthread_cond_wait(&a->less, &a->lock);
    if (st == BASE_OK)
        st = failed(a);
    if (st == BASE_OK)
        *result_p = a->queue[(ticket - 1) % QUEUE].call.result;
    pthread_mutex_unlock(&a->lock);
    return st;
}

base_status coll_async_end(struct coll *c)
{
    struct coll_async *a = c->async;
    base_status st;

    if (a == NULL)
        return BASE_OK;
    pthread_mutex_lock(&a->lock);
    a->ends = true;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    st = failed(a);
    c->async = NULL;
    pthread_cond_destroy(&a->less);
    pthread_cond_destroy(&a->more);
    pthread_mutex_destroy(&a->lock);
    base_free(a);
    return st;
}

double coll_async_busy(const struct coll *c)
{
    return c->async == NULL ? 0 : atomic_load_explicit(&c->async->busy, memory_order_relaxed);
}
