/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/shelf.h"

#include <stdio.h>

#include "base/clock.h"
#include "comm/transport.h"
#include "train/strategies/ps/server.h"

/* Seconds in which a reader may find the writer faster every time. */
static const double PATIENCE = 60;

static bool shares_memory(const struct train_team *team, int rank)
{
    return (comm_group_can(team->group, rank) & COMM_CAN_SHARE) != 0;
}

/* Does another worker read what this process serves? */
static bool has_readers(const struct train_team *team)
{
    const struct train_exchange *x = &team->exchange;

    for (int i = 0; i < x->size; i++)
        if (i != x->rank && shares_memory(team, i))
            return true;
    return false;
}

base_status ps_shelf_open(struct ps_shelf *shelf, struct train_team *team, size_t floats,
                          int servers)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &team->exchange;
    struct train_slice slices[2];
    char key[32];

    for (int i = 0; x->size > 1 && i < servers; i++) {
        ps_server_slices(floats, i, servers, slices);
        if (slices[0].count == 0 || !(i == x->rank ? has_readers(team) : shares_memory(team, i)))
            continue;
        snprintf(key, sizeof key, "ps/%d", i);
        TRY(comm_region_open(team->group, key, slices[0].count * sizeof(float), &shelf->of[i]));
    }
out:
    return st;
}

void ps_shelf_close(struct ps_shelf *shelf)
{
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        comm_region_close(shelf->of[i]);
    *shelf = (struct ps_shelf){0};
}

bool ps_shelf_has(const struct comm_region *region, uint64_t number)
{
    return comm_region_version(region) > number;
}

base_status ps_shelf_publish(struct comm_region *region, uint64_t number, const float *weights)
{
    return ps_shelf_has(region, number) ? BASE_OK
                                        : comm_region_publish(region, number + 1, weights);
}

base_status ps_shelf_read(const struct comm_region *region, uint64_t number, float *weights,
                          size_t count, uint64_t *number_p)
{
    base_status st = BASE_OK;
    uint64_t version;

    TRY(comm_region_read(region, 0, count * sizeof *weights, weights, base_now() + PATIENCE,
                         &version));
    if (version <= number)
        TRY(base_fail(BASE_ERR_INTERNAL, "shared weights lack entry %llu",
                      (unsigned long long)number));
    *number_p = version - 1;
out:
    return st;
}
