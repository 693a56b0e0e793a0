/* SPDX-License-Identifier: MIT
 *
 * What the files of comm/ share: the insides of an endpoint and of a group.
 */
#ifndef COMM_COMM_PRIVATE_H
#define COMM_COMM_PRIVATE_H

#include <stdatomic.h>

#include "comm/engine.h"
#include "comm/host.h"
#include "comm/stream.h"
#include "comm/transport.h"

enum { COMM_MAX_TRANSPORTS = 4 };

struct comm_endpoint {
    struct comm_endpoint_setup setup;
    char job[40];
    struct comm_secret secret;
    struct comm_listener *listener; /* NULL: does not listen */
    int bell;                       /* eventfd: readable once there is news for a wait */
    _Atomic bool rung;              /* the bell has rung and no wait has looked since */
    _Atomic uint64_t lost;          /* the last loss: view << 32 | id */
    _Atomic bool cancelled;
    _Atomic uint32_t newest; /* the newest view that this worker has heard of */
};

/* Sleeps until the bell rings, or until base_now() is `deadline`. In a simulated world the endpoint
 * is the address that is waited at (base/thread.h). */
void comm_endpoint_listen(struct comm_endpoint *endpoint, double deadline);
/* Rings for this worker's wait alone, on sockets; losses ring for the whole host, too. */
void comm_endpoint_ring(struct comm_endpoint *endpoint);
/* Silences the bell. What it rang for is in `lost`, `cancelled` and `newest`: look there
 * afterwards. */
void comm_endpoint_hush(struct comm_endpoint *endpoint);

struct comm_group {
    struct comm_endpoint *endpoint;
    struct comm_view view;
    int rank;
    struct {
        const struct comm_transport *ops;
        void *state;
    } open[COMM_MAX_TRANSPORTS];
    int open_count;
    int16_t through[COMM_MAX_WORKERS]; /* peer → index in `open`; -1: this rank itself */
    base_status failure;               /* BASE_OK, or why the group is void */
    double opening;                    /* when the opening began (base_now); 0: the group is open */
    uint32_t lost; /* id of a peer whose connection a transport saw break; 0: none */
    bool cut;   /* the transport knows for sure that the link is dead: no need to wait for word */
    bool polls; /* the wait under way is a comm_poll */
    uint32_t newest_told;       /* the newest view that a comm_poll returned for */
    uint32_t newest_passed_on;  /* the newest view that a comm_engine_poll returned for */
    struct comm_engine *engine; /* its thread uses the group; NULL: the caller's thread does */
    _Atomic bool called;        /* the engine has been handed something */
    _Atomic bool dozes;         /* the thread sleeps on the endpoint's bell, or is about to */
    int messages;               /* messages of the engine that are under way */
    _Atomic uint32_t *asleep;   /* a futex by which ranks of this host wake this one; or NULL */
};

/* BASE_OK, or the code of a loss or an end that was heard of: transports ask it when a sleep ends.
 * It silences the endpoint's bell. A transport whose connection broke returns BASE_ERR_PEER_LOST,
 * with the peer's id in group->lost: the group then waits a moment for the coordinator to name the
 * lost worker, since a survivor that leaves the group closes its connections, too. */
base_status comm_group_check(struct comm_group *group);
/* Fails where this thread may not wait: BASE_ERR_INTERNAL if an engine has the group, or what ended
 * the group. */
base_status comm_group_enter(const struct comm_group *group);
/* Makes the group void because a transport or a wait ended in `st`; returns the group's code. */
base_status comm_group_give_up(struct comm_group *group, base_status st, double deadline);

/* One turn of a wait: moves what can be moved, lets the engine take up and end messages, and looks
 * for losses where nothing moved. */
base_status comm_group_turn(struct comm_group *group, bool *moved_p);
/* The engine has messages under way: a thread that waits for something else takes turns meanwhile.
 */
static inline bool comm_group_has_messages(const struct comm_group *group)
{
    return group->messages > 0 || atomic_load_explicit(&group->called, memory_order_relaxed);
}
/* Sleeps between two turns until there may be something to do. */
void comm_group_rest(struct comm_group *group, double deadline);
/* Sleeps on the sockets fds[1 … count) and on the bell, which it puts into fds[0]. */
void comm_group_doze(struct comm_group *group, struct pollfd *fds, int count, double seconds);
/* Ends such sleeps. Called from any thread, after it has set `called`. */
void comm_group_wake(struct comm_group *group);
/* There is something that the wait under way must see: it must not sleep. Transports look once more
 * after they have made themselves wakeable. */
static inline bool comm_group_stirred(const struct comm_group *group)
{
    const uint32_t newest = atomic_load(&group->endpoint->newest);

    return atomic_load(&group->called) || (group->polls && newest > group->newest_told) ||
           (group->engine != NULL && newest > group->newest_passed_on);
}

/* Hands a request to the transport of its peer. */
void comm_group_post(struct comm_group *group, struct comm_request *request);
struct comm_request comm_request_send(int to, enum comm_channel channel, uint32_t tag,
                                      const void *bytes, size_t count);
struct comm_request comm_request_receive(int from, enum comm_channel channel, uint32_t tag,
                                         void *bytes, size_t count);
struct comm_request comm_request_receive_any(int from, enum comm_channel channel, void *bytes,
                                             size_t room);

/* comm/engine.c, on its thread: takes up what was handed over, ends messages that are done
 * (`moved`: some may be). True if something was taken up. */
bool comm_engine_turn(struct comm_engine *engine, bool moved);

/* "worker 2 on host 1 at 10.0.0.2, worker 3 on host 1 at 10.0.0.2": the ranks whose bits are set.
 */
void comm_group_name(const struct comm_group *group, uint64_t ranks, char *text, size_t room);

#endif
