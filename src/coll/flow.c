/* SPDX-License-Identifier: MIT
 *
 * Runs of messages to or from one peer. A message is at most COLL_CHUNK long, so that its receiver
 * can go on with the first bytes while later ones travel; COLL_WINDOW of them are under way, so
 * that the link waits for no rank.
 */
#include <assert.h>

#include "coll/coll_private.h"

void coll_flow_init(struct coll_flow *flow, int peer, bool sends)
{
    flow->peer = peer;
    flow->sends = sends;
    flow->posted = flow->done = 0;
}

bool coll_flow_room(const struct coll_flow *flow)
{
    return flow->posted - flow->done < COLL_WINDOW;
}

void coll_flow_post(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                    void *bytes, size_t count)
{
    struct comm_request *request = &flow->requests[flow->posted++ % COLL_WINDOW];
    int peer = c->group_rank[flow->peer];

    if (flow->sends)
        comm_send(c->group, peer, COMM_COLLECTIVES, call->tag, bytes, count, request);
    else
        comm_receive(c->group, peer, COMM_COLLECTIVES, call->tag, bytes, count, request);
}

bool coll_flow_reap(struct coll_flow *flow)
{
    if (flow->posted == flow->done || !flow->requests[flow->done % COLL_WINDOW].done)
        return false;
    flow->done++;
    return true;
}

base_status coll_flow_wait(struct coll *c, const struct coll_call *call,
                           const struct coll_flow *flows, int count)
{
    struct comm_request *oldest[2 * COMM_MAX_WORKERS];
    int waiting = 0;

    for (int i = 0; i < count; i++)
        if (flows[i].posted != flows[i].done)
            oldest[waiting++] =
                (struct comm_request *)&flows[i].requests[flows[i].done % COLL_WINDOW];
    assert(waiting > 0);
    return comm_wait_any(c->group, oldest, waiting, call->deadline);
}

base_status coll_flow_move(struct coll *c, const struct coll_call *call, struct coll_flow *flows,
                           void *const *bytes, const size_t *counts, int count)
{
    base_status st = BASE_OK;

    for (;;) {
        bool moved = false, waits = false;

        for (int i = 0; i < count; i++) {
            struct coll_flow *flow = &flows[i];

            for (size_t from;
                 coll_flow_room(flow) && (from = (size_t)flow->posted * COLL_CHUNK) < counts[i];) {
                size_t left = counts[i] - from;

                coll_flow_post(c, call, flow, (uint8_t *)bytes[i] + from,
                               left < COLL_CHUNK ? left : COLL_CHUNK);
            }
            while (coll_flow_reap(flow))
                moved = true;
            waits |= flow->posted != flow->done;
        }
        if (!moved && !waits)
            break;
        if (!moved)
            TRY(coll_flow_wait(c, call, flows, count));
    }
out:
    return st;
}

size_t coll_chunks(size_t bytes)
{
    return bytes / COLL_CHUNK + (bytes % COLL_CHUNK != 0);
}

void *coll_flow_slot(const struct coll *c, const struct coll_flow *flow, unsigned index)
{
    size_t slot = index % COLL_WINDOW + (flow->sends ? COLL_WINDOW : 0);

    return c->stage + slot * COLL_CHUNK;
}

void coll_flow_send(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                    bool packed, size_t bytes, void *from, void *slot)
{
    if (packed)
        coll_kernels()->pack(bytes / sizeof(float), from, slot);
    coll_flow_post(c, call, flow, packed ? slot : from, packed ? bytes / 2 : bytes);
}

void coll_flow_receive(struct coll *c, const struct coll_call *call, struct coll_flow *flow,
                       bool packed, size_t bytes, void *to, void *slot)
{
    coll_flow_post(c, call, flow, packed ? (uint8_t *)slot + bytes / 2 : to,
                   packed ? bytes / 2 : bytes);
}

void coll_flow_unpack(size_t bytes, void *to, const void *slot)
{
    coll_kernels()->unpack(bytes / sizeof(float), (const void *)((const uint8_t *)slot + bytes / 2),
                           to);
}
