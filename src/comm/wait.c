/* SPDX-License-Identifier: MIT
 *
 * Messages of a group: requests are handed to the transport of their peer. While a wait lasts,
 * every transport that has requests under way is moved on. When a wait
 * fails, this file decides once with which code; the group is void from then on.
 */
#include <assert.h>
#include <math.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "comm/comm_private.h"

enum { WATCHES = 2 * COMM_MAX_WORKERS * COMM_CHANNELS };

/* Seconds until the coordinator has named a lost worker to all others; when links are cut it needs
 * some time to decide which. */
static const double loss_told_within = 1.5;
/* Seconds that the opening of a group may take when there is a newer view already. */
static const double overtaken_after = 1;

void comm_group_post(struct comm_group *group, struct comm_request *request)
{
    int through;

    assert(request->peer >= 0 && request->peer < (int)group->view.size);
    if (group->failure != BASE_OK)
        return; /* the wait that follows fails and says why */
    through = group->through[request->peer];
    assert(through >= 0); /* a rank does not send to itself */
    group->open[through].ops->post(group->open[through].state, request);
}

struct comm_request comm_request_send(int to, enum comm_channel channel, uint32_t tag,
                                      const void *bytes, size_t count)
{
    return (struct comm_request){.channel = channel,
                                 .peer = to,
                                 .sends = true,
                                 .tag = tag,
                                 .bytes = (void *)bytes,
                                 .count = count};
}

struct comm_request comm_request_receive(int from, enum comm_channel channel, uint32_t tag,
                                         void *bytes, size_t count)
{
    return (struct comm_request){
        .channel = channel, .peer = from, .tag = tag, .bytes = bytes, .count = count};
}

struct comm_request comm_request_receive_any(int from, enum comm_channel channel, void *bytes,
                                             size_t room)
{
    return (struct comm_request){
        .channel = channel, .peer = from, .any = true, .bytes = bytes, .room = room};
}

void comm_send(struct comm_group *group, int to, enum comm_channel channel, uint32_t tag,
               const void *bytes, size_t count, struct comm_request *request)
{
    *request = comm_request_send(to, channel, tag, bytes, count);
    comm_group_post(group, request);
}

void comm_receive(struct comm_group *group, int from, enum comm_channel channel, uint32_t tag,
                  void *bytes, size_t count, struct comm_request *request)
{
    *request = comm_request_receive(from, channel, tag, bytes, count);
    comm_group_post(group, request);
}

void comm_receive_any(struct comm_group *group, int from, enum comm_channel channel, void *bytes,
                      size_t room, struct comm_request *request)
{
    *request = comm_request_receive_any(from, channel, bytes, room);
    comm_group_post(group, request);
}

/* Members that do not come to a view may have gone on to a newer one, if the coordinator was lost
 * before it told them of this one. */
static bool is_overtaken(const struct comm_group *group)
{
    return group->opening > 0 && atomic_load(&group->endpoint->newest) > group->view.number &&
           base_now() - group->opening > overtaken_after;
}

base_status comm_group_check(struct comm_group *group)
{
    struct comm_endpoint *endpoint = group->endpoint;
    uint32_t id;

    comm_endpoint_hush(endpoint);
    if (atomic_load(&endpoint->cancelled))
        return base_fail(BASE_ERR_INTERRUPTED, "the job ends");
    id = comm_endpoint_last_lost(endpoint, group->view.number);
    if (id == 0 && is_overtaken(group))
        return base_fail(BASE_ERR_PEER_LOST, "a newer view has come before all members of view %u",
                         group->view.number);
    if (id == 0)
        return BASE_OK;
    group->lost = id;
    return base_fail(BASE_ERR_PEER_LOST, "worker %u was lost from view %u", id, group->view.number);
}

/* A broken connection does not tell which worker is gone, because a survivor that left the group
 * closes its connections, too. So this waits a moment for the coordinator to name the lost worker.
 */
static base_status await_name_of_lost(struct comm_group *group, double deadline)
{
    double until = fmin(deadline, base_now() + loss_told_within);
    base_status st = BASE_OK;

    while ((st = comm_group_check(group)) == BASE_OK && base_now() < until)
        comm_endpoint_listen(group->endpoint, fmin(until, base_now() + 5e-3));
    return st;
}

base_status comm_group_give_up(struct comm_group *group, base_status st, double deadline)
{
    bool ask = st == BASE_ERR_PEER_LOST && !group->cut;
    base_status told = ask ? await_name_of_lost(group, deadline) : BASE_OK;

    group->failure = told != BASE_OK ? told : st;
    return group->failure;
}

base_status comm_group_ended(const struct comm_group *group)
{
    if (group->failure == BASE_OK)
        return BASE_OK;
    return base_fail(group->failure, "the group of view %u has ended (%s)", group->view.number,
                     base_code_name(group->failure));
}

static bool is_busy(const struct comm_group *group, int index)
{
    const struct comm_transport *ops = group->open[index].ops;

    return ops->busy == NULL || ops->busy(group->open[index].state);
}

static base_status move(struct comm_group *group, bool *moved_p)
{
    base_status st = BASE_OK;

    *moved_p = false;
    for (int i = 0; i < group->open_count && st == BASE_OK; i++) {
        bool moved = false;

        if (is_busy(group, i))
            st = group->open[i].ops->progress(group->open[i].state, &moved);
        *moved_p |= moved;
    }
    return st;
}

base_status comm_group_turn(struct comm_group *group, bool *moved_p)
{
    base_status st = BASE_OK;

    TRY(move(group, moved_p));
    if (group->engine != NULL && comm_engine_turn(group->engine, *moved_p))
        *moved_p = true;
    if (!*moved_p)
        TRY(comm_group_check(group));
out:
    return st;
}

void comm_group_doze(struct comm_group *group, struct pollfd *fds, int count, double seconds)
{
    struct timespec most = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};

    fds[0] = (struct pollfd){.fd = group->endpoint->bell, .events = POLLIN};
    atomic_store(&group->dozes, true);
    if (base_world != NULL && !comm_group_stirred(group))
        base_world->wait(group->endpoint, base_now() + seconds);
    else if (!comm_group_stirred(group))
        ppoll(fds, (nfds_t)count, &most, NULL);
    atomic_store(&group->dozes, false);
}

void comm_group_wake(struct comm_group *group)
{
    for (int i = 0; i < group->open_count; i++)
        if (group->open[i].ops->wake != NULL)
            group->open[i].ops->wake(group->open[i].state);
    if (atomic_load(&group->dozes) && atomic_exchange(&group->dozes, false))
        comm_endpoint_ring(group->endpoint);
}

/* Several transports at once: one poll over all their sockets. Shared memory has none, so the sleep
 * is short where it takes part. */
static void sleep_mixed(struct comm_group *group, double deadline)
{
    struct pollfd fds[WATCHES];
    double until = deadline;
    int count = 1;

    for (int i = 0; i < group->open_count; i++) {
        const struct comm_transport *ops = group->open[i].ops;
        int more = 0;

        if (!is_busy(group, i))
            continue;
        if (ops->watch != NULL)
            more = ops->watch(group->open[i].state, fds + count, WATCHES - count);
        if (more == 0)
            until = fmin(until, base_now() + 0.5e-3);
        count += more;
    }
    comm_group_doze(group, fds, count, fmin(fmax(until - base_now(), 0), 3600));
}

void comm_group_rest(struct comm_group *group, double deadline)
{
    int busy = 0, only = 0;

    for (int i = 0; i < group->open_count; i++) {
        if (is_busy(group, i)) {
            busy++;
            only = i;
        }
    }
    if (busy == 1 || group->open_count == 1)
        group->open[only].ops->sleep(group->open[only].state, deadline);
    else
        sleep_mixed(group, deadline);
}

static bool is_enough(struct comm_request *const *requests, int count, bool any)
{
    bool open = false;

    for (int i = 0; i < count; i++) {
        if (requests[i] == NULL)
            continue;
        if (requests[i]->done && any)
            return true;
        open |= !requests[i]->done;
    }
    return !open;
}

static base_status time_is_up(const struct comm_group *group, struct comm_request *const *requests,
                              int count)
{
    char names[256];
    uint64_t ranks = 0;

    for (int i = 0; i < count; i++)
        if (requests[i] != NULL && !requests[i]->done)
            ranks |= UINT64_C(1) << requests[i]->peer;
    comm_group_name(group, ranks, names, sizeof names);
    return base_fail(BASE_ERR_TIMEOUT, "view %u: nothing more came from or went to %s in time",
                     group->view.number, names);
}

base_status comm_group_enter(const struct comm_group *group)
{
    if (group->engine != NULL && !comm_engine_is_here(group->engine))
        return base_fail(BASE_ERR_INTERNAL, "the engine has the group of view %u (comm/engine.h)",
                         group->view.number);
    return comm_group_ended(group);
}

static base_status wait_for(struct comm_group *group, struct comm_request *const *requests,
                            int count, bool any, double deadline)
{
    base_status st = comm_group_enter(group);
    bool moved;

    if (st != BASE_OK)
        return st;
    while (!is_enough(requests, count, any)) {
        TRY(comm_group_turn(group, &moved));
        if (moved)
            continue;
        if (base_now() >= deadline)
            TRY(time_is_up(group, requests, count));
        comm_group_rest(group, deadline);
    }
out:
    return st == BASE_OK ? st : comm_group_give_up(group, st, deadline);
}

base_status comm_wait(struct comm_group *group, struct comm_request *const *requests, int count,
                      double deadline)
{
    return wait_for(group, requests, count, false, deadline);
}

base_status comm_wait_any(struct comm_group *group, struct comm_request *const *requests, int count,
                          double deadline)
{
    return wait_for(group, requests, count, true, deadline);
}

static int first_done(struct comm_request *const *requests, int count)
{
    for (int i = 0; i < count; i++)
        if (requests[i] != NULL && requests[i]->done)
            return i;
    return -1;
}

base_status comm_poll(struct comm_group *group, struct comm_request *const *requests, int count,
                      double until, int *index_p)
{
    base_status st = comm_group_enter(group);
    bool moved;

    *index_p = -1;
    if (st != BASE_OK)
        return st;
    group->polls = true;
    while ((*index_p = first_done(requests, count)) < 0) {
        TRY(comm_group_turn(group, &moved));
        if (comm_group_newest(group) > group->newest_told || base_now() >= until)
            break;
        if (!moved)
            comm_group_rest(group, until);
    }
    if (*index_p < 0)
        *index_p = first_done(requests, count); /* the last turn may have done it */
    if (*index_p < 0)
        group->newest_told = comm_group_newest(group);
out:
    group->polls = false;
    return st == BASE_OK ? st : comm_group_give_up(group, st, INFINITY);
}

base_status comm_local_barrier(struct comm_group *group, double deadline)
{
    int ranks[COMM_MAX_WORKERS];
    base_status st = comm_group_enter(group);

    if (st != BASE_OK)
        return st;
    for (int i = 0; i < group->open_count; i++) {
        if ((group->open[i].ops->can & COMM_CAN_SHARE) == 0)
            continue;
        st = group->open[i].ops->barrier(group->open[i].state, deadline);
        return st == BASE_OK ? st : comm_group_give_up(group, st, deadline);
    }
    if (comm_group_locals(group, ranks) > 1)
        return base_fail(BASE_ERR_INTERNAL, "a local barrier needs shared memory");
    return BASE_OK;
}
