/* SPDX-License-Identifier: MIT
 *
 * Bytes that are passed on: from a parent to children, message by message, so that a tree or a
 * chain of ranks moves a long buffer in little more than the time of one link.
 */
#include "coll/coll_private.h"

struct relay {
    struct coll *c;
    const struct coll_call *call;
    uint8_t *bytes;
    size_t total;
};

static void post(const struct relay *r, struct coll_flow *flow)
{
    size_t from = (size_t)flow->posted * COLL_CHUNK, left = r->total - from;

    coll_flow_post(r->c, r->call, flow, r->bytes + from, left < COLL_CHUNK ? left : COLL_CHUNK);
}

base_status coll_relay(struct coll *c, const struct coll_call *call, int parent,
                       const int *children, int count, void *bytes, size_t total)
{
    base_status st = BASE_OK;
    struct relay r = {c, call, bytes, total};
    struct coll_flow *in = &c->flows[0];
    size_t chunks = coll_chunks(total);

    coll_flow_init(in, parent, false);
    for (int i = 0; i < count; i++)
        coll_flow_init(&c->flows[1 + i], children[i], true);
    for (;;) {
        bool moved = false, waits = false;
        size_t here = parent < 0 ? chunks : in->done;

        while (parent >= 0 && in->posted < chunks && coll_flow_room(in))
            post(&r, in);
        for (int i = 1; i <= count; i++)
            while (c->flows[i].posted < here && coll_flow_room(&c->flows[i]))
                post(&r, &c->flows[i]);
        for (int i = 0; i <= count; i++) {
            while (coll_flow_reap(&c->flows[i]))
                moved = true;
            waits |= c->flows[i].posted != c->flows[i].done;
        }
        if (!moved && !waits)
            break;
        if (!moved)
            TRY(coll_flow_wait(c, call, c->flows, 1 + count));
    }
out:
    return st;
}
