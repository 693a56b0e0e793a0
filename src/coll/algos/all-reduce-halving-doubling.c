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
static base_status halving_doubling_exchange(struct coll *c, const struct coll_call *call,
                                             int partner, struct range out, struct range in,
                                             bool adds)
{
    base_status st = BASE_OK;
    const size_t most = COLL_CHUNK / sizeof(float);
    const bool packed = call->sum->wire == COLL_BF16;
    struct coll_flow *sends = &c->flows[0], *gets = &c->flows[1];
    size_t count;

    coll_flow_init(sends, partner, true);
    coll_flow_init(gets, partner, false);
    for (size_t asked = in.from, sent = out.from, got = in.from;;) {
        for (; asked < in.to && coll_flow_room(gets); asked += count) {
            float *slot = coll_flow_slot(c, gets, gets->posted);

            count = coll_least(most, in.to - asked);
            coll_flow_receive(c, call, gets, packed, count * sizeof *slot,
                              adds ? slot : call->x + asked, slot);
        }
        for (; sent < out.to && coll_flow_room(sends); sent += count) {
            count = coll_least(most, out.to - sent);
            coll_flow_send(c, call, sends, packed, count * sizeof *call->x, call->x + sent,
                           coll_flow_slot(c, sends, sends->posted));
        }
        if (sends->posted == sends->done && gets->posted == gets->done)
            break;
        if (coll_flow_reap(gets)) {
            float *slot = coll_flow_slot(c, gets, gets->done - 1);

            count = coll_least(most, in.to - got);
            if (packed)
                coll_flow_unpack(count * sizeof *slot, adds ? slot : call->x + got, slot);
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

/* Ranks 0 … power - 1 sum x. */
static base_status halving_doubling_steps(struct coll *c, struct coll_call *call, int power)
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
        TRY(halving_doubling_exchange(c, call, me ^ distance, others[level], mine[level + 1],
                                      true));
    }
    if (call->sum->wire == COLL_BF16) /* the owner keeps what the others get */
        coll_round(mine[level].to - mine[level].from, call->x + mine[level].from);
    for (int distance = 1; distance < power; distance *= 2) {
        level--;
        TRY(halving_doubling_exchange(c, call, me ^ distance, mine[level + 1], others[level],
                                      false));
    }
out:
    return st;
}

static base_status halving_doubling_run(struct coll *c, struct coll_call *call)
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
        TRY(halving_doubling_exchange(c, call, me - power, all, none, true));
        TRY(halving_doubling_exchange(c, call, me - power, none, all, false));
    } else {
        if (me < extra)
            TRY(halving_doubling_exchange(c, call, me + power, none, all, true));
        TRY(halving_doubling_steps(c, call, power));
        if (me < extra)
            TRY(halving_doubling_exchange(c, call, me + power, all, none, false));
    }
out:
    return st;
}

static double halving_doubling_estimate(const struct coll *c, const struct coll_call *call)
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
    .estimate = halving_doubling_estimate,
    .run = halving_doubling_run,
};
