/* SPDX-License-Identifier: MIT
 *
 * Vectors that are divided between ranks: a range of one is reduced to the ranks that keep it, or
 * gathered from them. Each rank brings a range at a time, so no rank needs memory for the whole.
 *
 * A sum has the bits that an all-reduce of the whole vector would give, for the algorithm that
 * would be chosen for it. Where that is the ring, partial sums travel around the ring here, too.
 * Where the hosts' workers share memory, hosts are added up first. In every other order a rank gets
 * the values of all others and adds them itself (coll/order.c).
 *
 * Further copies of a slice are kept by the ranks after its owner, who passes its sums on to them.
 */
#include <string.h>

#include "coll/coll_private.h"

struct span {
    size_t from, count; /* floats, of the range */
    size_t at;          /* its first float, of the slice */
};

/* What the range has of a slice. */
static struct span span_of(const struct coll *c, const struct coll_owned *range, int slice)
{
    size_t begin, length, end = range->from + range->count, from, to;

    coll_slice(range->whole, slice, c->world.size, &begin, &length);
    from = begin > range->from ? begin : range->from;
    to = coll_least(begin + length, end);
    if (to <= from)
        return (struct span){0};
    return (struct span){from - range->from, to - from, from - begin};
}

static void blocks_of(const struct coll *c, const struct coll_call *call,
                      const struct coll_owned *range, struct coll_blocks *blocks_p)
{
    blocks_p->base = (uint8_t *)call->x;
    for (int i = 0; i < c->world.size; i++) {
        struct span span = span_of(c, range, i);

        blocks_p->offset[i] = span.from * sizeof *call->x;
        blocks_p->bytes[i] = span.count * sizeof *call->x;
    }
}

static enum coll_order order_of_whole(const struct coll *c, const struct coll_call *call,
                                      const struct coll_owned *range)
{
    const struct coll_call whole = {.kind = COLL_ALL_REDUCE,
                                    .x = call->x,
                                    .count = range->whole,
                                    .space = call->space,
                                    .sum = call->sum};

    return coll_choose(c, &whole)->order;
}

/* Copies what this rank keeps of slice rank - i. `sums`: the range. */
static void keep(const struct coll *c, const struct coll_keepers *k, int i, const float *sums)
{
    int slice = (c->world.me + c->world.size - i) % c->world.size;
    struct span span = span_of(c, &k->range, slice);

    if (span.count > 0)
        memcpy(k->kept[i] + span.at, sums + span.from, span.count * sizeof *sums);
}

/* ---- all ranks share memory */

/* Every rank adds up an equal part of the range, and leaves the sums in the owners' buffers: this
 * part is read by no other rank before the barrier. */
static void sum_equal_part(struct coll *c, const struct coll_call *call,
                           const struct coll_owned *range, enum coll_order order)
{
    size_t begin, length;

    coll_slice(range->count, c->world.me, c->world.size, &begin, &length);
    for (int owner = 0; owner < c->world.size; owner++) {
        struct span span = span_of(c, range, owner);
        size_t from = span.from > begin ? span.from : begin;
        size_t to = coll_least(span.from + span.count, begin + length);
        const float *sources[COMM_MAX_WORKERS];

        if (to <= from)
            continue;
        coll_space_sources(call->space, call->offset + from, sources);
        coll_sum_in_order(order, c->world.size, owner, to - from, sources, (float *)sources[owner]);
    }
}

static base_status reduce_in_memory(struct coll *c, const struct coll_call *call,
                                    const struct coll_keepers *k, enum coll_order order)
{
    base_status st = BASE_OK;
    int n = c->world.size;

    TRY(coll_local_meet(c, call));
    sum_equal_part(c, call, &k->range, order);
    TRY(coll_local_barrier(c, call->deadline));
    for (int i = 0; i < k->range.copies; i++)
        keep(c, k, i, coll_space_of(call->space, (c->world.me + n - i) % n) + call->offset);
    if (k->range.copies > 1) /* then others' buffers are still being read */
        TRY(coll_local_barrier(c, call->deadline));
out:
    return st;
}

static base_status gather_in_memory(struct coll *c, const struct coll_call *call,
                                    const struct coll_owned *range)
{
    base_status st = BASE_OK;

    TRY(coll_local_meet(c, call));
    for (int i = 0; i < c->world.size; i++) {
        struct span span = span_of(c, range, i);

        if (i != c->world.me && span.count > 0)
            memcpy(call->x + span.from, coll_space_of(call->space, i) + call->offset + span.from,
                   span.count * sizeof *call->x);
    }
    TRY(coll_local_barrier(c, call->deadline));
out:
    return st;
}

/* ---- hosts whose ranks share memory */

static int leader_of(const struct coll *c, int rank)
{
    int i = 0;

    while (coll_member(c, c->leaders.rank[i])->host != coll_member(c, rank)->host)
        i++;
    return i;
}

/* The hosts' sums of every run of slices that are one host's go to its leader. */
static base_status sum_hosts(struct coll *c, const struct coll_call *call,
                             const struct coll_owned *range, float *sums)
{
    base_status st = BASE_OK;

    for (int slice = 0, end; slice < c->world.size; slice = end) {
        int leader = leader_of(c, slice);
        size_t bytes = 0;
        struct coll_blocks blocks = {.base = (uint8_t *)sums};

        for (end = slice; end < c->world.size && leader_of(c, end) == leader; end++) {
            struct span span = span_of(c, range, end);

            if (bytes == 0)
                blocks.offset[leader] = span.from * sizeof *sums;
            bytes += span.count * sizeof *sums;
        }
        blocks.bytes[leader] = bytes;
        if (bytes > 0)
            TRY(coll_direct(c, call, &c->leaders, &blocks, COLL_PHASE_REDUCE));
    }
out:
    return st;
}

/* *sums_p: the range, complete in what this host's ranks own. */
static base_status reduce_by_hosts(struct coll *c, const struct coll_call *call,
                                   const struct coll_owned *range, float **sums_p)
{
    base_status st = BASE_OK;
    const float *sources[COMM_MAX_WORKERS];
    size_t from, count;
    float *mine;

    *sums_p = call->x;
    if (c->locals.size > 1) {
        *sums_p = coll_space_result(call->space) + call->offset;
        coll_slice(call->count, c->locals.me, c->locals.size, &from, &count);
        coll_space_sources(call->space, call->offset + from, sources);
        mine = *sums_p + from;
        TRY(coll_local_meet(c, call));
        coll_local_sum(c, call, sources, count, 1, &mine, false);
        TRY(coll_local_barrier(c, call->deadline));
    }
    if (c->leaders.me >= 0)
        TRY(sum_hosts(c, call, range, *sums_p));
    if (c->locals.size > 1)
        TRY(coll_local_barrier(c, call->deadline));
out:
    return st;
}

/* ---- messages */

static base_status reduce_by_messages(struct coll *c, struct coll_call *call,
                                      const struct coll_owned *range, enum coll_order order)
{
    struct coll_blocks blocks;

    blocks_of(c, call, range, &blocks);
    if (order == COLL_ORDER_RING)
        return coll_ring(c, call, &c->world, &blocks, COLL_PHASE_REDUCE);
    call->order = order;
    return coll_direct(c, call, &c->world, &blocks, COLL_PHASE_REDUCE);
}

/* This rank sends the sums of its slice to the ranks that keep copies of it, and receives those of
 * the slices that it keeps copies of. */
static base_status pass_on(struct coll *c, const struct coll_call *call,
                           const struct coll_keepers *k)
{
    void *bytes[2 * COMM_MAX_WORKERS];
    size_t counts[2 * COMM_MAX_WORKERS];
    const int n = c->world.size, me = c->world.me;
    const struct span own = span_of(c, &k->range, me);
    int flows = 0;

    for (int i = 1; i < k->range.copies; i++) {
        int before = (me + n - i) % n;
        const struct span span = span_of(c, &k->range, before);

        coll_flow_init(&c->flows[flows], before, false);
        bytes[flows] = k->kept[i] + span.at;
        counts[flows++] = span.count * sizeof(float);
        coll_flow_init(&c->flows[flows], (me + i) % n, true);
        bytes[flows] = k->kept[0] + own.at;
        counts[flows++] = own.count * sizeof(float);
    }
    return coll_flow_move(c, call, c->flows, bytes, counts, flows);
}

/* A ring passes each block from rank to rank; an owner that sends to all at once is done in one
 * round, but its link carries everything. */
static base_status gather_by_messages(struct coll *c, const struct coll_call *call,
                                      const struct coll_owned *range)
{
    struct coll_blocks blocks;
    size_t longest = 0, bytes = range->count * sizeof(float);
    double n = c->world.size, direct, ring;

    blocks_of(c, call, range, &blocks);
    for (int i = 0; i < c->world.size; i++)
        longest = blocks.bytes[i] > longest ? blocks.bytes[i] : longest;
    direct = coll_cost_of(c, 1, n - 1, COLL_CROWD * (n - 1) * (double)longest);
    ring = coll_cost_of(c, n - 1, n - 1, (double)bytes);
    if (direct < ring)
        return coll_direct(c, call, &c->world, &blocks, COLL_PHASE_GATHER);
    return coll_ring(c, call, &c->world, &blocks, COLL_PHASE_GATHER);
}

/* ---- as they are called */

base_status coll_reduce_owned(struct coll *c, struct coll_call *call, const struct coll_keepers *k)
{
    base_status st = BASE_OK;
    float *sums = call->x;
    enum coll_order order;

    if (c->world.size == 1) {
        keep(c, k, 0, sums);
        return BASE_OK;
    }
    call->kind = COLL_REDUCE_SCATTER;
    TRY(coll_begin(c, call));
    order = order_of_whole(c, call, &k->range);
    if (coll_shares(c))
        return reduce_in_memory(c, call, k, order);
    if (order == COLL_ORDER_HOSTS)
        TRY(reduce_by_hosts(c, call, &k->range, &sums));
    else
        TRY(reduce_by_messages(c, call, &k->range, order));
    keep(c, k, 0, sums);
    TRY(pass_on(c, call, k));
out:
    return st;
}

base_status coll_gather_owned(struct coll *c, struct coll_call *call, const struct coll_keepers *k)
{
    struct span own = span_of(c, &k->range, c->world.me);
    base_status st = BASE_OK;

    if (own.count > 0)
        memcpy(call->x + own.from, k->kept[0] + own.at, own.count * sizeof *call->x);
    if (c->world.size == 1)
        return BASE_OK;
    call->kind = COLL_ALL_GATHER;
    TRY(coll_begin(c, call));
    if (coll_shares(c))
        return gather_in_memory(c, call, &k->range);
    TRY(gather_by_messages(c, call, &k->range));
out:
    return st;
}
