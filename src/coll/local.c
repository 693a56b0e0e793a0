/* SPDX-License-Identifier: MIT
 *
 * Staging memory that the ranks of one host share: two halves for each of them and two for results.
 * Every rank writes into the next half, meets the others, and reads what was written; meanwhile the
 * other half may be filled. That is enough: a rank that writes into a half again has met twice
 * since, and the others came to the second meeting after they had read it. So one barrier a piece
 * will do.
 *
 * A meeting also compares what the ranks are doing: shared memory has no messages whose tags would
 * tell.
 */
#include "coll/coll_private.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

enum { LINE = 64 };

struct head { /* what a rank is doing, in a cache line of its own */
    _Atomic uint64_t call;
    char pad[LINE - sizeof(uint64_t)];
};

struct coll_local {
    struct comm_shared shared;
    struct head *heads; /* [half][member] */
    uint8_t *halves;    /* [member and results][half] */
    unsigned turn;      /* counts the meetings, on all ranks alike */
};

/* More than a core's own cache: what another core has just written is read faster where it has gone
 * on to the shared one. */
static const size_t half_bytes = 1 << 20;

static base_status populate(void *memory, size_t bytes, bool first)
{
    volatile uint8_t *at = memory;

    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* where the system has them for shared memory */
    if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
        return BASE_OK;
    if (errno != EINVAL)
        return base_fail(BASE_ERR_MEMORY, "no shared memory for %.1f MB: %m", (double)bytes / 1e6);
    if (first) /* a kernel before 5.14 */
        for (size_t i = 0; i < bytes; i += 4096)
            at[i] = 0;
    return BASE_OK;
}

struct share {
    struct coll *c;
    const char *key;
    size_t bytes;
    struct comm_shared *shared_p;
};

static base_status share(void *context)
{
    const struct share *s = context;
    struct coll *c = s->c;
    base_status st = BASE_OK;
    double deadline = coll_deadline(c);
    bool first = c->locals.me == 0;
    char name[64];

    if ((size_t)snprintf(name, sizeof name, "view/%u/%s%s", comm_group_view(c->group)->number,
                         c->prefix, s->key) >= sizeof name)
        TRY(base_fail(BASE_ERR_INTERNAL, "the key '%s' of shared memory is too long", s->key));
    TRY(comm_group_share(c->group, name, s->bytes, s->shared_p));
    if (first)
        TRY(populate(s->shared_p->at, s->bytes, true));
    TRY(coll_local_barrier(c, deadline));
    if (!first)
        TRY(populate(s->shared_p->at, s->bytes, false));
    TRY(coll_local_barrier(c, deadline));
out:
    return st;
}

base_status coll_share(struct coll *c, const char *key, size_t bytes, struct comm_shared *shared_p)
{
    return coll_perform(c, share, &(struct share){c, key, bytes, shared_p});
}

base_status coll_local_barrier(struct coll *c, double deadline)
{
    return c->barrier.words != NULL ? comm_barrier_wait(&c->barrier, deadline)
                                    : comm_local_barrier(c->group, deadline);
}

/* A part has barriers of its own, in words that only its ranks share. */
static base_status open_barrier(struct coll *c)
{
    int ranks[COMM_MAX_WORKERS];
    char key[64];

    for (int i = 0; i < c->locals.size; i++)
        ranks[i] = c->group_rank[c->locals.rank[i]];
    snprintf(key, sizeof key, "view/%u/%sbarrier", comm_group_view(c->group)->number, c->prefix);
    return comm_barrier_open(&c->barrier, c->group, key, ranks, c->locals.size);
}

base_status coll_local_open(struct coll *c)
{
    base_status st = BASE_OK;
    struct coll_local *local = base_calloc(1, sizeof *local);
    size_t members = (size_t)c->locals.size, heads = 2 * members * sizeof(struct head);

    if (c != c->whole)
        TRY(open_barrier(c));
    heads = (heads + 4095) / 4096 * 4096;
    TRY(coll_share(c, "coll", heads + 2 * (members + 1) * half_bytes, &local->shared));
    local->heads = local->shared.at;
    local->halves = (uint8_t *)local->shared.at + heads;
    c->local = local;
    local = NULL;
out:
    coll_local_close(local);
    return st;
}

void coll_local_close(struct coll_local *local)
{
    if (local == NULL)
        return;
    comm_shared_close(&local->shared);
    base_free(local);
}

size_t coll_local_half(void)
{
    return half_bytes;
}

size_t coll_local_piece(const struct coll *c, size_t bytes)
{
    const size_t streams = 64 << 10;

    return bytes <= half_bytes / 2 && !c->crowded ? streams : half_bytes;
}

static uint8_t *half(const struct coll_local *local, int member, unsigned turn)
{
    return local->halves + (2 * (size_t)member + turn % 2) * half_bytes;
}

uint8_t *coll_local_next(struct coll *c, int member)
{
    return half(c->local, member, c->local->turn + 1);
}

uint8_t *coll_local_seen(struct coll *c, int member)
{
    return half(c->local, member, c->local->turn);
}

base_status coll_local_meet(struct coll *c, const struct coll_call *call)
{
    base_status st = BASE_OK;
    struct coll_local *local = c->local;
    uint64_t mine = (uint64_t)call->tag << 32 | (uint32_t)call->count;
    struct head *heads = local->heads + (local->turn + 1) % 2 * (size_t)c->locals.size;

    atomic_store_explicit(&heads[c->locals.me].call, mine, memory_order_relaxed);
    TRY(coll_local_barrier(c, call->deadline));
    local->turn++;
    for (int i = 0; i < c->locals.size; i++)
        if (atomic_load_explicit(&heads[i].call, memory_order_relaxed) != mine)
            TRY(base_fail(BASE_ERR_DATA, "ranks %d and %d are not in the same collective operation",
                          c->locals.rank[c->locals.me], c->locals.rank[i]));
out:
    return st;
}

base_status coll_local_broadcast(struct coll *c, const struct coll_call *call, int from,
                                 void *bytes, size_t count)
{
    base_status st = BASE_OK;
    const size_t most = coll_local_piece(c, count);
    uint8_t *at = bytes;

    for (size_t done = 0; done < count; done += most) {
        size_t piece = coll_least(count - done, most);

        if (c->locals.me == from)
            memcpy(coll_local_next(c, from), at + done, piece);
        TRY(coll_local_meet(c, call));
        if (c->locals.me != from)
            memcpy(at + done, coll_local_seen(c, from), piece);
    }
out:
    return st;
}

void coll_local_sum(struct coll *c, const struct coll_call *call, const float *const *sources,
                    size_t count, int outs, float *const *y, bool stream)
{
    float scale[COMM_MAX_WORKERS];

    for (int i = 0; i < c->locals.size; i++)
        scale[i] = coll_scale_of(call, c->locals.rank[i]);
    coll_kernels()->sum(count, c->locals.size, sources, call->sum->scale ? scale : NULL, outs, y,
                        stream);
}

static base_status reduce_small(struct coll *c, const struct coll_call *call, bool to_all)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];

    memcpy(coll_local_next(c, c->locals.me), call->x, call->count * sizeof *call->x);
    TRY(coll_local_meet(c, call));
    if (!to_all && c->locals.me != 0)
        return BASE_OK;
    for (int i = 0; i < c->locals.size; i++)
        sources[i] = (const float *)coll_local_seen(c, i);
    coll_local_sum(c, call, sources, call->count, 1, &(float *){call->x}, false);
out:
    return st;
}

/* Floats [from, from + count) of x, which the locals divide into slices. */
struct piece {
    size_t from, count;
};

static struct piece piece_at(const struct coll_call *call, size_t index)
{
    const size_t most = half_bytes / sizeof *call->x;

    return (struct piece){most * index, coll_least(call->count - most * index, most)};
}

/* Copies all of a piece but the own slice, which needs no copy. */
static void copy_others(struct coll *c, struct piece p, float *to, const float *from)
{
    size_t mine, count;

    coll_slice(p.count, c->locals.me, c->locals.size, &mine, &count);
    memcpy(to, from, mine * sizeof *to);
    memcpy(to + mine + count, from + mine + count, (p.count - mine - count) * sizeof *to);
}

static void sum_slice(struct coll *c, const struct coll_call *call, struct piece p)
{
    const float *sources[COMM_MAX_WORKERS];
    size_t mine, count;
    float *y[2];

    coll_slice(p.count, c->locals.me, c->locals.size, &mine, &count);
    for (int i = 0; i < c->locals.size; i++)
        sources[i] = (const float *)coll_local_seen(c, i) + mine;
    sources[c->locals.me] = y[0] = call->x + p.from + mine;
    y[1] = (float *)coll_local_next(c, c->locals.size) + mine;
    coll_local_sum(c, call, sources, count, 2, y, false);
}

/* A pipeline: while piece t is copied in, t - 1 is summed, a slice by each rank, and t - 2 is
 * copied out. */
base_status coll_local_reduce(struct coll *c, const struct coll_call *call, bool to_all)
{
    base_status st = BASE_OK;
    size_t bytes = call->count * sizeof *call->x;
    size_t pieces = bytes / half_bytes + (bytes % half_bytes != 0);
    struct piece p;

    if (bytes <= c->small)
        return reduce_small(c, call, to_all);
    for (size_t t = 0; t < pieces + 2; t++) {
        if (t < pieces) {
            p = piece_at(call, t);
            copy_others(c, p, (float *)coll_local_next(c, c->locals.me), call->x + p.from);
        }
        if (t >= 1 && t <= pieces)
            sum_slice(c, call, piece_at(call, t - 1));
        if (t >= 2 && (to_all || c->locals.me == 0)) {
            p = piece_at(call, t - 2);
            copy_others(c, p, call->x + p.from, (const float *)coll_local_seen(c, c->locals.size));
        }
        if (t <= pieces)
            TRY(coll_local_meet(c, call));
    }
out:
    return st;
}
