/* SPDX-License-Identifier: MIT
 *
 * The ring: every member sends to the next one and receives from the one before, n - 1 steps to
 * reduce and n - 1 to gather (Patarasuk & Yuan 2009). In step t member m sends block m - t - 1 and
 * receives block m - t - 2: in the last step of reducing its own. Steps are no barriers: a message
 * goes on as soon as it was added, so all links are busy all the time.
 *
 * A block's memory is written by GATHER after it was sent by REDUCE: what arrives has gone around
 * the ring, the earlier sending of the same bytes included.
 */
#include "coll/coll_private.h"

struct cursor { /* a message in the order of steps */
    int step;
    size_t chunk;
};

struct ring {
    struct coll *c;
    const struct coll_call *call;
    const struct coll_team *team;
    const struct coll_blocks *blocks;
    bool packed; /* bf16 travels */
    float scale;
    int end; /* step */
    struct coll_flow *in, *out;
    struct cursor send, receive, take; /* next to be posted, posted, looked at */
    size_t ready;                      /* messages that may be sent */
};

/* In a step a member sends the block at distance 1 before its own and receives the one at 2. */
static int block_at(const struct ring *r, int step, int distance)
{
    int n = r->team->size;

    return ((r->team->me - step - distance) % n + 2 * n) % n;
}

/* The cursor's message, or the next one there is; blocks may be empty. */
static bool settle(const struct ring *r, struct cursor *at, int distance)
{
    while (at->step < r->end &&
           at->chunk >= coll_chunks(r->blocks->bytes[block_at(r, at->step, distance)])) {
        at->step++;
        at->chunk = 0;
    }
    return at->step < r->end;
}

static void *message(const struct ring *r, const struct cursor *at, int distance, size_t *bytes_p)
{
    int block = block_at(r, at->step, distance);
    size_t from = at->chunk * COLL_CHUNK;

    *bytes_p = coll_least(r->blocks->bytes[block] - from, COLL_CHUNK);
    return r->blocks->base + r->blocks->offset[block] + from;
}

static void post_receive(struct ring *r)
{
    size_t bytes;
    void *to = message(r, &r->receive, 2, &bytes);
    void *slot = coll_flow_slot(r->c, r->in, r->in->posted);
    bool adds = r->receive.step < r->team->size - 1;

    coll_flow_receive(r->c, r->call, r->in, r->packed, bytes, adds ? slot : to, slot);
    r->receive.chunk++;
}

static void post_send(struct ring *r)
{
    size_t bytes;
    void *from = message(r, &r->send, 1, &bytes);
    void *slot = coll_flow_slot(r->c, r->out, r->out->posted);

    if (r->send.step == 0 && r->scale != 1.0f)
        coll_scale(bytes / sizeof(float), r->scale, from);
    coll_flow_send(r->c, r->call, r->out, r->packed, bytes, from, slot);
    if (r->packed && r->send.step == r->team->size - 1) /* the owner keeps what the others get */
        coll_kernels()->unpack(bytes / sizeof(float), slot, from);
    r->send.chunk++;
}

static void take(struct ring *r)
{
    size_t bytes;
    void *x, *slot = coll_flow_slot(r->c, r->in, r->in->done - 1);
    bool adds;

    settle(r, &r->take, 2);
    adds = r->take.step < r->team->size - 1;
    x = message(r, &r->take, 2, &bytes);
    if (r->packed)
        coll_flow_unpack(bytes, adds ? slot : x, slot);
    if (adds)
        coll_add(bytes / sizeof(float), slot, r->scale, x);
    r->take.chunk++;
    r->ready++;
}

base_status coll_ring(struct coll *c, const struct coll_call *call, const struct coll_team *team,
                      const struct coll_blocks *blocks, unsigned phases)
{
    base_status st = BASE_OK;
    int n = team->size, first = phases & COLL_PHASE_REDUCE ? 0 : n - 1;
    struct cursor start = {.step = first};
    struct ring r = {.c = c,
                     .call = call,
                     .team = team,
                     .blocks = blocks,
                     .packed = first == 0 && call->sum->wire == COLL_BF16,
                     .scale = first == 0 ? coll_scale_of(call, team->rank[team->me]) : 1.0f,
                     .end = phases & COLL_PHASE_GATHER ? 2 * (n - 1) : n - 1,
                     .in = &c->flows[0],
                     .out = &c->flows[1],
                     .send = start,
                     .receive = start,
                     .take = start};

    coll_flow_init(r.in, team->rank[(team->me + n - 1) % n], false);
    coll_flow_init(r.out, team->rank[(team->me + 1) % n], true);
    r.ready = coll_chunks(blocks->bytes[block_at(&r, first, 1)]);
    for (;;) {
        while (coll_flow_room(r.in) && settle(&r, &r.receive, 2))
            post_receive(&r);
        while (coll_flow_room(r.out) && r.out->posted < r.ready && settle(&r, &r.send, 1))
            post_send(&r);
        if (r.in->posted == r.in->done && r.out->posted == r.out->done)
            break;
        if (coll_flow_reap(r.in))
            take(&r);
        else if (!coll_flow_reap(r.out))
            TRY(coll_flow_wait(c, call, c->flows, 2));
    }
out:
    return st;
}

double coll_ring_estimate(const struct coll *c, const struct coll_call *call)
{
    double n = coll_size(c), steps = (call->kind == COLL_ALL_REDUCE ? 2 : 1) * (n - 1);

    return coll_cost_of(c, steps, steps, steps / n * coll_bytes_of(c, call));
}

base_status coll_ring_run(struct coll *c, struct coll_call *call)
{
    struct coll_blocks blocks;

    coll_blocks_of(call, &c->world, &blocks);
    return coll_ring(c, call, &c->world, &blocks, coll_phases_of(call->kind));
}
