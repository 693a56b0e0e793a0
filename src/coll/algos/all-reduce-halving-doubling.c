/* SPDX-License-Identifier: MIT
 *
 * Recursive halving and doubling (Rabenseifner 2004): partners at distance p/2, p/4, …, 1 exchange
 * half of what they still have and add; then the way back. 2 log2(p) steps and the fewest bytes,
 * for p ranks, the largest power of two; the others add theirs to ranks 0, 1, … first and get the
 * sum at the end.
 */
#include "coll/coll_private.h"

enum { MAX_LEVELS = 8 };

struct range {
    size_t from, to; /* floats */
};

/* Receives what a partner has and adds it, while the own part goes out. Either may be empty. */
static base_status exchange(struct coll *c, const struct coll_call *call, int partner,
                            struct range out, struct range in, bool adds)
{
    base_status st = BASE_OK;
    const size_t piece = COLL_CHUNK / sizeof(float);
    const bool packed = call->sum->wire == COLL_BF16;
    struct coll_flow *sends = &c->flows[0], *gets = &c->flows[1];
    size_t sent = out.from, asked = in.from, got = in.from;

    coll_flow_init(sends, partner, true);
    coll_flow_init(gets, partner, false);
    for (;;) {
        for (; asked < in.to && coll_flow_room(gets); asked += coll_least(piece, in.to - asked)) {
            size_t count = coll_least(piece, in.to - asked);
            float *slot = (float *)(c->stage + gets->posted % COLL_WINDOW * (size_t)COLL_CHUNK);

            if (packed) /* into the upper half: it is unpacked in place */
                coll_flow_post(c, call, gets, (uint16_t *)slot + count, count * 2);
            else
                coll_flow_post(c, call, gets, adds ? slot : call->x + asked, count * 4);
        }
        for (; sent < out.to && coll_flow_room(sends); sent += coll_least(piece, out.to - sent)) {
            size_t count = coll_least(piece, out.to - sent);
            uint16_t *slot = (uint16_t *)(c->stage + (sends->posted % COLL_WINDOW + COLL_WINDOW) *
                                                         (size_t)COLL_CHUNK);

            if (packed)
                coll_kernels()->pack(count, call->x + sent, slot);
            coll_flow_post(c, call, sends, packed ? (void *)slot : call->x + sent,
                           count * (packed ? 2 : 4));
        }
        if (sends->posted == sends->done && gets->posted == gets->done)
            break;
        if (coll_flow_reap(gets)) {
            size_t count = coll_least(piece, in.to - got);
            float *slot = (float *)(c->stage + (gets->done - 1) % COLL_WINDOW * (size_t)COLL_CHUNK);

            if (packed)
                coll_kernels()->unpack(count, (uint16_t *)slot + count,
                                       adds ? slot : call->x + got);
            if (adds)
                coll_add(count, slot, 1.0f, call->x + got);
            got += count;
        } else if (!coll_flow_reap(sends)) {
            TRY(coll_flow_wait(c, call, c->flows, 2));
        }
    }
out:
    return st;
}

static base_status halve_and_double(struct coll *c, struct coll_call *call, int power)
{
    base_status st = BASE_OK;
    struct range mine[MAX_LEVELS] = {{0, call->count}}, others[MAX_LEVELS];
    int me = coll_rank(c), level = 0;

    for (int distance = power / 2; distance > 0; distance /= 2, level++) {
        size_t from = mine[level].from, first, rest;
        bool upper = me & distance;

        coll_slice(mine[level].to - from, 1, 2, &first, &rest);
        mine[level + 1] = upper ? (struct range){from + first, mine[level].to}
                                : (struct range){from, from + first};
        others[level] = upper ? (struct range){from, from + first}
                              : (struct range){from + first, mine[level].to};
        TRY(exchange(c, call, me ^ distance, others[level], mine[level + 1], true));
    }
    if (call->sum->wire == COLL_BF16) /* the owner keeps what the others get */
        coll_round(mine[level].to - mine[level].from, call->x + mine[level].from);
    for (int distance = 1; distance < power; distance *= 2) {
        level--;
        TRY(exchange(c, call, me ^ distance, mine[level + 1], others[level], false));
    }
out:
    return st;
}

static base_status run(struct coll *c, struct coll_call *call)
{
    base_status st = BASE_OK;
    const struct range all = {0, call->count}, none = {0, 0};
    int power = 1, me = coll_rank(c), extra;
    float scale = coll_scale_of(call, me);

    while (2 * power <= coll_size(c))
        power *= 2;
    extra = coll_size(c) - power;
    if (scale != 1.0f)
        coll_scale(call->count, scale, call->x);
    if (me >= power) {
        TRY(exchange(c, call, me - power, all, none, true));
        TRY(exchange(c, call, me - power, none, all, false));
    } else {
        if (me < extra)
            TRY(exchange(c, call, me + power, none, all, true));
        TRY(halve_and_double(c, call, power));
        if (me < extra)
            TRY(exchange(c, call, me + power, all, none, false));
    }
out:
    return st;
}

static double estimate(const struct coll *c, const struct coll_call *call)
{
    const double pauses = 1.02; /* nothing moves between two exchanges */
    double power = 1, n = coll_size(c), rounds = 0, bytes = coll_bytes_of(c, call);

    for (; 2 * power <= n; power *= 2)
        rounds += 2;
    rounds += power < n ? 2 : 0;
    return coll_cost_of(c, rounds, rounds,
                        pauses * (2 * (power - 1) / power + (power < n ? 2 : 0)) * bytes);
}

const struct coll_algorithm coll_algorithm_all_reduce_halving_doubling = {
    .name = "halving-doubling",
    .help = "partners exchange halves: few steps, few bytes",
    .kind = COLL_ALL_REDUCE,
    .order = COLL_ORDER_TREE,
    .estimate = estimate,
    .run = run,
};
