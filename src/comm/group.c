/* SPDX-License-Identifier: MIT
 *
 * Opening a group: picks a transport for each peer, then opens each transport with the peers that
 * it was picked for. Also questions about the members. Messages and waits are in comm/wait.c.
 */
#include "comm/group.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
#include "comm/comm_private.h"

static const struct comm_transport *choose(const struct comm_group *group, int peer,
                                           const struct comm_transport *forced)
{
    const struct comm_transport *best = NULL;

    for (size_t i = 0; i < comm_transport_count; i++) {
        const struct comm_transport *t = comm_transport_registry[i];

        if ((forced == NULL || t == forced) && (best == NULL || t->rank < best->rank) &&
            t->reaches(group, peer))
            best = t;
    }
    return best;
}

static base_status choose_all(const struct comm_group *group, const char *transport,
                              const struct comm_transport *chosen[COMM_MAX_WORKERS])
{
    const struct comm_transport *forced = NULL;
    base_status st = BASE_OK;

    if (transport != NULL)
        TRY(base_registry_find("transport", transport, comm_transport_registry,
                               comm_transport_count, &forced));
    for (int peer = 0; peer < (int)group->view.size; peer++) {
        if (peer == group->rank)
            continue;
        chosen[peer] = choose(group, peer, forced);
        if (chosen[peer] == NULL)
            TRY(base_fail(BASE_ERR_USAGE, "worker %u does not reach worker %u through %s",
                          group->view.members[group->rank].id, group->view.members[peer].id,
                          transport != NULL ? transport : "any transport"));
    }
out:
    return st;
}

/* Opens one transport for the peers that it was chosen for. */
static base_status open_one(struct comm_group *group, const struct comm_transport *t,
                            const struct comm_transport *const *chosen, double deadline)
{
    int peers[COMM_MAX_WORKERS], count = 0, index = group->open_count;
    base_status st;

    for (int peer = 0; peer < (int)group->view.size; peer++) {
        if (chosen[peer] != t)
            continue;
        group->through[peer] = (int16_t)index;
        peers[count++] = peer;
    }
    if (count == 0)
        return BASE_OK;
    assert(index < COMM_MAX_TRANSPORTS);
    st = t->open(group, peers, count, deadline, &group->open[index].state);
    group->open[index].ops = t;
    group->open_count += st == BASE_OK;
    return st;
}

/* Every rank opens its transports in the same order, so that no two ranks wait for each other
 * in different transports. */
static base_status open_all(struct comm_group *group, const struct comm_transport *const *chosen,
                            double deadline)
{
    bool opened[COMM_MAX_TRANSPORTS] = {false};
    base_status st = BASE_OK;

    assert(comm_transport_count <= COMM_MAX_TRANSPORTS);
    for (size_t turn = 0; turn < comm_transport_count; turn++) {
        size_t next = comm_transport_count;

        for (size_t i = 0; i < comm_transport_count; i++)
            if (!opened[i] &&
                (next == comm_transport_count ||
                 comm_transport_registry[i]->rank < comm_transport_registry[next]->rank))
                next = i;
        opened[next] = true;
        TRY(open_one(group, comm_transport_registry[next], chosen, deadline));
    }
out:
    return st;
}

base_status comm_group_open(struct comm_endpoint *endpoint, const struct comm_view *view,
                            const char *transport, double deadline, struct comm_group **group_p)
{
    const struct comm_transport *chosen[COMM_MAX_WORKERS] = {NULL};
    struct comm_group *group = base_calloc(1, sizeof *group);
    base_status st;

    *group_p = group;
    group->endpoint = endpoint;
    group->view = *view;
    group->newest_told = group->newest_passed_on = view->number;
    group->rank = comm_view_rank(view, endpoint->setup.id);
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        group->through[i] = -1;
    if (group->rank < 0)
        TRY(base_fail(BASE_ERR_INTERNAL, "worker %u is not in view %u", endpoint->setup.id,
                      view->number));
    group->opening = base_now();
    TRY(comm_group_check(group));
    TRY(choose_all(group, transport, chosen));
    TRY(open_all(group, chosen, deadline));
    group->opening = 0;
out:
    group->failure = st;
    return st;
}

void comm_group_close(struct comm_group *group)
{
    if (group == NULL)
        return;
    base_ignore(comm_engine_end(group));
    for (int i = group->open_count - 1; i >= 0; i--)
        group->open[i].ops->close(group->open[i].state);
    base_free(group);
}

base_status comm_group_share(struct comm_group *group, const char *key, size_t bytes,
                             struct comm_shared *shared_p)
{
    base_status st = comm_shared_open(group->endpoint, key, bytes, shared_p);

    return st == BASE_ERR_PEER_LOST ? comm_group_give_up(group, st, INFINITY) : st;
}

void comm_group_name(const struct comm_group *group, uint64_t ranks, char *text, size_t room)
{
    size_t used = 0;

    _Static_assert(COMM_MAX_WORKERS <= 64, "a rank is a bit");
    text[0] = '\0';
    for (uint32_t rank = 0; rank < group->view.size && used < room; rank++) {
        const struct comm_member *m = &group->view.members[rank];

        if ((ranks >> rank & 1) != 0)
            used += (size_t)snprintf(text + used, room - used, "%sworker %u on host %u%s%s",
                                     used > 0 ? ", " : "", m->id, m->host,
                                     m->address[0] != '\0' ? " at " : "", m->address);
    }
}

int comm_group_rank(const struct comm_group *group)
{
    return group->rank;
}

int comm_group_size(const struct comm_group *group)
{
    return (int)group->view.size;
}

const struct comm_view *comm_group_view(const struct comm_group *group)
{
    return &group->view;
}

struct comm_endpoint *comm_group_endpoint(const struct comm_group *group)
{
    return group->endpoint;
}

uint32_t comm_group_newest(const struct comm_group *group)
{
    uint32_t newest = atomic_load(&group->endpoint->newest);

    return newest > group->view.number ? newest : group->view.number;
}

/* What failed need not have been a wait: an agent that is in a later view gives no memory to this
 * one. */
uint32_t comm_group_lost(const struct comm_group *group)
{
    return group->lost != 0 ? group->lost
                            : comm_endpoint_last_lost(group->endpoint, group->view.number);
}

unsigned comm_group_can(const struct comm_group *group, int rank)
{
    if (group->through[rank] >= 0)
        return group->open[group->through[rank]].ops->can;
    return COMM_CAN_RECOVER | (group->endpoint->setup.region != NULL ? COMM_CAN_SHARE : 0);
}

unsigned comm_group_can_all(const struct comm_group *group)
{
    unsigned can = ~0U;

    for (int rank = 0; rank < (int)group->view.size; rank++)
        if (rank != group->rank || group->view.size == 1)
            can &= comm_group_can(group, rank);
    return can;
}

int comm_group_locals(const struct comm_group *group, int ranks[COMM_MAX_WORKERS])
{
    const struct comm_member *members = group->view.members;
    int count = 0;

    for (int rank = 0; rank < (int)group->view.size; rank++)
        if (members[rank].host == members[group->rank].host)
            ranks[count++] = rank;
    return count;
}

bool comm_group_sending(const struct comm_group *group, int peer, double *seconds_p,
                        double *bytes_p)
{
    int i = group->through[peer];

    *seconds_p = *bytes_p = 0;
    return i >= 0 && group->open[i].ops->sending != NULL &&
           group->open[i].ops->sending(group->open[i].state, peer, seconds_p, bytes_p);
}

uint64_t comm_group_bytes_sent(const struct comm_group *group)
{
    uint64_t bytes = 0;

    for (int i = 0; i < group->open_count; i++)
        bytes += group->open[i].ops->bytes_sent(group->open[i].state);
    return bytes;
}
