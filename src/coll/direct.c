/* SPDX-License-Identifier: MIT
 *
 * Every member talks to all others. REDUCE: a member gets its block of all of them and sums it in
 * the order of the team, or in the one that the call names, message by message; GATHER: a message
 * goes to all as soon as it was summed. Between two members the messages of REDUCE come first.
 *
 * With bf16 on the wire others' blocks are packed where they lie: REDUCE leaves them packed.
 */
#include "coll/coll_private.h"

enum { SLOTS = 2 }; /* of the stage for what comes from one peer */

struct direct {
    struct coll *c;
    const struct coll_call *call;
    const struct coll_team *team;
    const struct coll_blocks *blocks;
    unsigned phases;
    bool packed;   /* bf16 travels */
    size_t summed; /* messages of the own block */
    size_t to_sum; /* of REDUCE: all messages of the own block; otherwise 0 */
    float scale[COMM_MAX_WORKERS];
    uint8_t *results; /* COLL_WINDOW packed messages of the own block */
};

struct peer {
    int index, member;
    struct coll_flow *in, *out;
};

/* Peers in an order that begins with the next member: not all start with the same one. */
static struct peer peer_at(const struct direct *d, int i)
{
    return (struct peer){.index = i,
                         .member = (d->team->me + 1 + i) % d->team->size,
                         .in = &d->c->flows[2 * i],
                         .out = &d->c->flows[2 * i + 1]};
}

static void *message(const struct direct *d, int member, size_t chunk, size_t *bytes_p)
{
    size_t from = chunk * COLL_CHUNK;

    *bytes_p = coll_least(d->blocks->bytes[member] - from, COLL_CHUNK);
    return d->blocks->base + d->blocks->offset[member] + from;
}

static size_t chunks_of(const struct direct *d, int member)
{
    return coll_chunks(d->blocks->bytes[member]);
}

static void *slot_at(const struct direct *d, int index, size_t message)
{
    return d->c->stage + ((size_t)index * SLOTS + message % SLOTS) * COLL_CHUNK;
}

static void *result_slot(const struct direct *d, size_t chunk)
{
    return d->results + chunk % COLL_WINDOW * COLL_CHUNK;
}

/* Posts the next message from a peer; false: there is none, or no room. */
static bool post_receive(struct direct *d, struct peer p)
{
    size_t next = p.in->posted, free_up_to, bytes;
    bool reduces = next < d->to_sum;
    void *to, *slot = slot_at(d, p.index, next);

    if (!coll_flow_room(p.in) ||
        next >= d->to_sum + (d->phases & COLL_PHASE_GATHER ? chunks_of(d, p.member) : 0))
        return false;
    free_up_to = SLOTS + (d->summed < d->to_sum ? d->summed : p.in->done);
    if ((reduces || d->packed) && next >= free_up_to)
        return false;
    to = reduces ? message(d, d->team->me, next, &bytes)
                 : message(d, p.member, next - d->to_sum, &bytes);
    coll_flow_receive(d->c, d->call, p.in, d->packed, bytes, reduces ? slot : to, slot);
    return true;
}

static bool post_send(struct direct *d, struct peer p)
{
    size_t next = p.out->posted, bytes;
    size_t of_peer = d->phases & COLL_PHASE_REDUCE ? chunks_of(d, p.member) : 0;
    size_t ready = d->phases & COLL_PHASE_REDUCE ? d->summed : chunks_of(d, d->team->me);
    void *from;

    if (!coll_flow_room(p.out) || next >= of_peer + (d->phases & COLL_PHASE_GATHER ? ready : 0))
        return false;
    if (next < of_peer) {
        from = message(d, p.member, next, &bytes);
        coll_flow_send(d->c, d->call, p.out, d->packed, bytes, from, from);
        return true;
    }
    from = message(d, d->team->me, next - of_peer, &bytes);
    if (d->packed) /* once for all peers, by sum_next */
        coll_flow_post(d->c, d->call, p.out, result_slot(d, next - of_peer), bytes / 2);
    else
        coll_flow_post(d->c, d->call, p.out, from, bytes);
    return true;
}

static bool take(struct direct *d, struct peer p)
{
    size_t bytes, index = p.in->done;
    void *x;

    if (!coll_flow_reap(p.in))
        return false;
    if (d->packed && index >= d->to_sum) {
        x = message(d, p.member, index - d->to_sum, &bytes);
        coll_flow_unpack(bytes, x, slot_at(d, p.index, index));
    }
    return true;
}

/* Every peer's part of the next message is here, and its result has room. */
static bool may_sum(const struct direct *d)
{
    if (d->summed == d->to_sum)
        return false;
    for (int i = 0; i < d->team->size - 1; i++) {
        struct peer p = peer_at(d, i);

        if (p.in->done <= d->summed)
            return false;
        if (d->packed && d->summed + chunks_of(d, p.member) >= COLL_WINDOW + (size_t)p.out->done &&
            d->summed >= COLL_WINDOW && d->phases & COLL_PHASE_GATHER)
            return false;
    }
    return true;
}

static void sum_next(struct direct *d)
{
    const float *sources[COMM_MAX_WORKERS];
    size_t bytes, count;
    float *x = message(d, d->team->me, d->summed, &bytes);

    count = bytes / sizeof *x;
    sources[d->team->me] = x;
    for (int i = 0; i < d->team->size - 1; i++) {
        struct peer p = peer_at(d, i);
        float *slot = slot_at(d, p.index, d->summed);

        if (d->packed)
            coll_flow_unpack(bytes, slot, slot);
        sources[p.member] = slot;
    }
    if (d->call->order != COLL_ORDER_NONE)
        coll_sum_in_order(d->call->order, d->team->size, d->team->me, count, sources, x);
    else
        coll_kernels()->sum(count, d->team->size, sources, d->call->sum->scale ? d->scale : NULL, 1,
                            &x, false);
    if (d->packed && d->phases & COLL_PHASE_GATHER) { /* the owner keeps what the others get */
        uint16_t *packed = result_slot(d, d->summed);

        coll_kernels()->pack(count, x, packed);
        coll_kernels()->unpack(count, packed, x);
    }
    d->summed++;
}

static bool progress(struct direct *d)
{
    bool moved = false;

    for (int i = 0; i < d->team->size - 1; i++) {
        struct peer p = peer_at(d, i);

        while (post_receive(d, p))
            moved = true;
        while (post_send(d, p))
            moved = true;
        while (take(d, p))
            moved = true;
        while (coll_flow_reap(p.out))
            moved = true;
    }
    while (may_sum(d)) {
        sum_next(d);
        moved = true;
    }
    return moved;
}

static bool pending(const struct direct *d)
{
    for (int i = 0; i < 2 * (d->team->size - 1); i++)
        if (d->c->flows[i].posted != d->c->flows[i].done)
            return true;
    return false;
}

base_status coll_direct(struct coll *c, const struct coll_call *call, const struct coll_team *team,
                        const struct coll_blocks *blocks, unsigned phases)
{
    base_status st = BASE_OK;
    struct direct d = {.c = c, .call = call, .team = team, .blocks = blocks, .phases = phases};

    d.results = slot_at(&d, team->size - 1, 0);
    if (phases & COLL_PHASE_REDUCE) {
        d.packed = call->sum->wire == COLL_BF16;
        d.to_sum = chunks_of(&d, team->me);
        for (int i = 0; i < team->size; i++)
            d.scale[i] = coll_scale_of(call, team->rank[i]);
    }
    for (int i = 0; i < team->size - 1; i++) {
        struct peer p = peer_at(&d, i);

        coll_flow_init(p.in, team->rank[p.member], false);
        coll_flow_init(p.out, team->rank[p.member], true);
    }
    for (;;) {
        if (progress(&d))
            continue;
        if (!pending(&d))
            break;
        TRY(coll_flow_wait(c, call, c->flows, 2 * (team->size - 1)));
    }
out:
    return st;
}

double coll_direct_estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c), bytes = coll_bytes_of(c, call);
    double phases = call->kind == COLL_ALL_REDUCE ? 2 : 1;
    bool one_slice = phases > 1 && bytes <= COLL_UNIT; /* a message to its owner, or back */

    return coll_cost_of(c, phases, (one_slice ? 1 : phases) * (n - 1),
                        COLL_CROWD * phases * (n - 1) / n * bytes);
}

base_status coll_direct_run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    coll_blocks_of(call, &c->world, &blocks);
    return coll_direct(c, call, &c->world, &blocks, coll_phases_of(call->kind));
}
