/* SPDX-License-Identifier: MIT
 *
 * What an opened group is like: who shares memory with whom, what a message costs and what a byte.
 * It is measured between neighbours when the group is opened; the slowest counts, so that every
 * rank has the same numbers.
 */
#include "coll/coll_private.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/transport.h"

/* Everybody sends `count` bytes to the next rank; the best of `times`, from the second on. */
static base_status time_neighbours(struct coll *c, size_t count, int times, double *seconds_p)
{
    base_status st = BASE_OK;
    const struct coll_call call = {.deadline = coll_deadline(c)};
    int n = c->world.size;

    *seconds_p = 1e9;
    for (int i = 0; i <= times; i++) { /* the first one warms up */
        void *bytes[] = {c->stage, c->stage + COLL_WINDOW * (size_t)COLL_CHUNK};
        size_t counts[] = {count, count};
        double start = base_now(), seconds;

        coll_flow_init(&c->flows[0], (c->world.me + 1) % n, true);
        coll_flow_init(&c->flows[1], (c->world.me + n - 1) % n, false);
        TRY(coll_flow_move(c, &call, c->flows, bytes, counts, 2));
        seconds = base_now() - start;
        if (i > 0 && seconds < *seconds_p)
            *seconds_p = seconds;
    }
out:
    return st;
}

/* What each rank saw; the slowest counts, so that all have the same numbers. */
struct seen {
    double message, byte;
    uint64_t shares; /* with all ranks of its host */
};

static base_status agree(struct coll *c, struct seen *seen)
{
    base_status st = BASE_OK;
    struct seen *all = base_calloc((size_t)c->world.size, sizeof *all);
    const struct coll_call call = {.out = all, .count = sizeof *all, .deadline = coll_deadline(c)};
    struct coll_blocks blocks;

    all[c->world.me] = *seen;
    coll_blocks_of(&call, &c->world, &blocks);
    TRY(coll_direct(c, &call, &c->world, &blocks, COLL_PHASE_GATHER));
    for (int i = 0; i < c->world.size; i++) {
        seen->message = all[i].message > seen->message ? all[i].message : seen->message;
        seen->byte = all[i].byte > seen->byte ? all[i].byte : seen->byte;
        seen->shares &= all[i].shares;
    }
out:
    base_free(all);
    return st;
}

static void only_me(struct coll_team *team, int rank)
{
    *team = (struct coll_team){.size = 1, .me = 0, .rank = {rank}};
}

base_status coll_find_teams(struct coll *c)
{
    base_status st = BASE_OK;
    struct seen seen = {.shares = 1};
    int ranks[COMM_MAX_WORKERS], count = comm_group_locals(c->group, ranks);

    for (int i = 0; i < count; i++)
        if (ranks[i] != c->world.me && !(comm_group_can(c->group, ranks[i]) & COMM_CAN_SHARE))
            seen.shares = 0;
    TRY(agree(c, &seen));
    only_me(&c->locals, c->world.me);
    c->leaders = c->world;
    if (seen.shares) {
        c->locals.size = count;
        memcpy(c->locals.rank, ranks, sizeof ranks);
        c->locals.me = coll_team_find(&c->locals, c->world.me);
        c->leaders.size = comm_group_leaders(c->group, c->leaders.rank);
        c->leaders.me = coll_team_find(&c->leaders, c->world.me);
    }
out:
    return st;
}

base_status coll_cost_measure(struct coll *c)
{
    enum { MANY = COLL_WINDOW * COLL_CHUNK };
    base_status st = BASE_OK;
    struct seen seen = {0};
    double few, many;

    c->cost = (struct coll_cost){3e-6, 1 / 3e9}; /* messages through shared memory */
    if (coll_shares(c))
        return BASE_OK;
    TRY(time_neighbours(c, 1, 8, &few));
    TRY(time_neighbours(c, MANY, 2, &many));
    seen.message = few;
    seen.byte = many > few ? (many - few) / MANY : 0;
    TRY(agree(c, &seen));
    c->cost = (struct coll_cost){seen.message, seen.byte};
out:
    return st;
}

base_status coll_cost_link(struct coll *c, double *rate_p)
{
    enum { MANY = COLL_WINDOW * COLL_CHUNK };
    base_status st = BASE_OK;
    double seconds;

    TRY(time_neighbours(c, MANY, 20, &seconds));
    *rate_p = MANY / seconds;
out:
    return st;
}

double coll_cost_of(const struct coll *c, double messages, double bytes)
{
    return messages * c->cost.message + bytes * c->cost.byte;
}

double coll_local_cost(const struct coll *c, double barriers, double bytes)
{
    (void)c;
    return barriers * 0.5e-6 + bytes / 20e9;
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
    return comm_group_can_all(c->group) & COMM_CAN_NATIVE ? NULL : "needs the transport mpi";
}
