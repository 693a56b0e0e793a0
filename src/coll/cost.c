/* SPDX-License-Identifier: MIT
 *
 * What an opened group is like: who shares memory with whom, what a message costs and what a byte.
 * It is measured between neighbours when the group is opened; the slowest counts, so that every
 * rank has the same numbers. A part between hosts has those of the whole.
 */
#include "coll/coll_private.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/transport.h"

/* Every rank sends `count` bytes to each of the next `peers` ranks; the best of `times`. */
static base_status time_neighbours(struct coll *c, int peers, size_t count, int times,
                                   double *seconds_p)
{
    base_status st = BASE_OK;
    const struct coll_call call = {.tag = coll_tag(c, COLL_KINDS, 0), .deadline = coll_deadline(c)};
    int n = c->world.size, me = c->world.me;

    *seconds_p = 1e9;
    for (int i = 0; i <= times; i++) { /* the first one warms up */
        void *bytes[2 * COMM_MAX_WORKERS];
        size_t counts[2 * COMM_MAX_WORKERS];
        double start = base_now(), seconds;

        for (int k = 0; k < 2 * peers; k++) {
            bool sends = k % 2 == 0;
            int distance = 1 + k / 2;

            bytes[k] = c->stage + (sends ? 0 : COLL_WINDOW * (size_t)COLL_CHUNK);
            counts[k] = count;
            coll_flow_init(&c->flows[k], (sends ? me + distance : me + n - distance) % n, sends);
        }
        TRY(coll_flow_move(c, &call, c->flows, bytes, counts, 2 * peers));
        seconds = base_now() - start;
        if (i > 0 && seconds < *seconds_p)
            *seconds_p = seconds;
    }
out:
    return st;
}

static base_status time_barrier(struct coll *c, double *seconds_p)
{
    enum { TIMES = 20 };
    base_status st = BASE_OK;
    double start = base_now(), deadline = coll_deadline(c);

    *seconds_p = 0;
    if (c->local == NULL)
        return BASE_OK;
    for (int i = 0; i < 2 * TIMES; i++) { /* the first half warms up */
        if (i == TIMES)
            start = base_now();
        TRY(coll_local_barrier(c, deadline));
    }
    *seconds_p = (base_now() - start) / TIMES;
out:
    return st;
}

/* What each rank saw; the slowest counts, so that all have the same numbers. */
struct seen {
    struct coll_cost cost;
    uint64_t shares;  /* with all ranks of its host */
    uint64_t crowded; /* more ranks on its host than cores */
    uint64_t numbers; /* of the parts that it is in */
};

static void take_most(double *most, double other)
{
    if (other > *most)
        *most = other;
}

static base_status agree(struct coll *c, struct seen *seen)
{
    base_status st = BASE_OK;
    struct seen *all = base_calloc((size_t)c->world.size, sizeof *all);
    const struct coll_call call = {.out = all,
                                   .count = sizeof *all,
                                   .tag = coll_tag(c, COLL_KINDS, 0),
                                   .deadline = coll_deadline(c)};
    struct coll_blocks blocks;

    all[c->world.me] = *seen;
    coll_blocks_of(&call, &c->world, &blocks);
    TRY(coll_direct(c, &call, &c->world, &blocks, COLL_PHASE_GATHER));
    for (int i = 0; i < c->world.size; i++) {
        take_most(&seen->cost.round, all[i].cost.round);
        take_most(&seen->cost.message, all[i].cost.message);
        take_most(&seen->cost.byte, all[i].cost.byte);
        take_most(&seen->cost.barrier, all[i].cost.barrier);
        seen->shares &= all[i].shares;
        seen->crowded |= all[i].crowded;
        seen->numbers |= all[i].numbers;
    }
out:
    base_free(all);
    return st;
}

static bool same_host(const struct coll *c, int rank, int other)
{
    return coll_member(c, rank)->host == coll_member(c, other)->host;
}

static void find_locals(const struct coll *c, struct coll_team *team_p)
{
    team_p->size = 0;
    for (int i = 0; i < c->world.size; i++)
        if (same_host(c, i, c->world.me))
            team_p->rank[team_p->size++] = i;
    team_p->me = coll_team_find(team_p, c->world.me);
}

static void find_leaders(const struct coll *c, struct coll_team *team_p)
{
    team_p->size = 0;
    for (int i = 0; i < c->world.size; i++) {
        int first = 0;

        while (!same_host(c, first, i))
            first++;
        if (first == i)
            team_p->rank[team_p->size++] = i;
    }
    team_p->me = coll_team_find(team_p, c->world.me);
}

base_status coll_find_teams(struct coll *c)
{
    base_status st = BASE_OK;
    struct seen seen = {.shares = 1, .numbers = c->whole->numbers};
    int me = c->world.me, on_host[COMM_MAX_WORKERS];

    find_locals(c, &c->locals);
    for (int i = 0; i < c->locals.size; i++)
        if (c->locals.rank[i] != me &&
            !(comm_group_can(c->group, c->group_rank[c->locals.rank[i]]) & COMM_CAN_SHARE))
            seen.shares = 0;
    /* The cores of a host are shared with its ranks that are not of this part, too. */
    seen.crowded = comm_group_locals(c->group, on_host) > sysconf(_SC_NPROCESSORS_ONLN);
    TRY(agree(c, &seen));
    c->crowded = seen.crowded;
    if (seen.shares) {
        find_leaders(c, &c->leaders);
    } else {
        c->locals = (struct coll_team){.size = 1, .me = 0, .rank = {me}};
        c->leaders = c->world;
    }
    if (c != c->whole)
        TRY(coll_part_number(c, seen.numbers));
out:
    return st;
}

base_status coll_cost_measure(struct coll *c)
{
    enum { MANY = COLL_WINDOW * COLL_CHUNK };
    base_status st = BASE_OK;
    struct seen seen = {0};
    struct coll_cost *cost = &seen.cost;
    double one, all, many;

    /* Whatever the load, a barrier costs less than a message that a rank waits for. */
    if (coll_shares(c)) {
        c->cost = (struct coll_cost){1.5e-6, 1.5e-6, 1 / 3e9, 0.5e-6};
        return BASE_OK;
    }
    if (c != c->whole) { /* parts are opened at little cost */
        c->cost = c->whole->cost;
        return BASE_OK;
    }
    TRY(time_neighbours(c, 1, 1, 8, &one));
    TRY(time_neighbours(c, c->world.size - 1, 1, 8, &all));
    TRY(time_neighbours(c, 1, MANY, 2, &many));
    TRY(time_barrier(c, &cost->barrier));
    /* one = round + message, all = round + (n - 1) messages */
    cost->message = c->world.size > 2 ? (all - one) / (c->world.size - 2) : one / 2;
    cost->message = fmax(0.1 * one, fmin(0.9 * one, cost->message));
    cost->round = one - cost->message;
    cost->byte = many > one ? (many - one) / MANY : 0;
    TRY(agree(c, &seen));
    c->cost = seen.cost;
out:
    return st;
}

base_status coll_cost_link(struct coll *c, double *rate_p)
{
    enum { MANY = COLL_WINDOW * COLL_CHUNK };
    base_status st = BASE_OK;
    double seconds;

    TRY(time_neighbours(c, 1, MANY, 20, &seconds));
    *rate_p = MANY / seconds;
out:
    return st;
}

double coll_cost_of(const struct coll *c, double rounds, double messages, double bytes)
{
    return rounds * c->cost.round + messages * c->cost.message + bytes * c->cost.byte;
}

double coll_local_cost(const struct coll *c, double barriers, double bytes)
{
    const double rate = 20e9; /* a core's, in and out of the caches that are shared */

    return barriers * c->cost.barrier + bytes / rate;
}

/* Measured with 2 and 4 workers on 2 cores. A message needs no barrier, at which ranks that take
 * turns wait for each other, and the second half of a long one is copied in while the first is
 * copied out. */
bool coll_mail_is_faster(const struct coll *c, double bytes)
{
    return bytes <= 1 << 20 && (c->crowded || bytes >= 1 << 16);
}

double coll_log2(int n)
{
    int bits = 0;

    while (1 << bits < n)
        bits++;
    return bits;
}

double coll_bytes_of(const struct coll *c, const struct coll_call *call)
{
    return call->x != NULL ? (double)call->count * sizeof(float)
                           : (double)call->count * coll_size(c);
}

const char *coll_unfit_apart(const struct coll *c)
{
    return coll_shares(c) ? NULL : "needs shared memory between all ranks";
}

const char *coll_unfit_flat(const struct coll *c)
{
    if (c->leaders.size > 1 && c->leaders.size < c->world.size)
        return NULL;
    return "needs several hosts, one of them with several workers that share memory";
}

const char *coll_unfit_foreign(const struct coll *c)
{
    if ((comm_group_can_all(c->group) & COMM_CAN_NATIVE) == 0)
        return "needs the transport mpi";
    return c == c->whole ? NULL : "needs all ranks of the group";
}
