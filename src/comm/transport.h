/* SPDX-License-Identifier: MIT
 *
 * What a file in comm/transports/ provides: `const struct comm_transport comm_transport_NAME`. A
 * group asks each transport which peers it reaches, opens the ones it needs, and moves requests
 * through them; it sleeps where the transport says. The transport knows nothing of collectives.
 */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include <poll.h>

#include "comm/group.h"

enum comm_can {
    COMM_CAN_SHARE = 1,   /* its ranks share memory: comm_shared_open, comm_local_barrier */
    COMM_CAN_RECOVER = 2, /* a loss leaves the survivors able to open the next view */
    COMM_CAN_NATIVE = 4,  /* brings its own collectives (comm/transports/mpi.h) */
};

struct comm_transport {
    const char *name, *help;
    unsigned can;
    int rank; /* preference among transports, lowest first */
    /* COMM_CAN_NATIVE only, in a process that the transport's own launcher (mpirun) started: gives
     * the view of all its processes and the id of this one. Call `end` only on
     * success: exiting without it makes the launcher end the job. */
    base_status (*start)(struct comm_view *view_p, uint32_t *id_p);
    void (*end)(void);
    /* True if this rank reaches `peer` through the transport. No side effects. */
    bool (*reaches)(const struct comm_group *group, int peer);
    /* Connects with all of peers[0 … count) and returns when they are connected. */
    base_status (*open)(struct comm_group *group, const int *peers, int count, double deadline,
                        void **state_p);
    void (*close)(void *state); /* accepts NULL and half-built */
    /* Takes over a request, which `progress` then moves. */
    void (*post)(void *state, struct comm_request *request);
    bool (*busy)(const void *state); /* requests are under way. NULL: always assumed */
    /* Moves what can be moved without waiting; *moved_p: something was. Fails when a connection
     * fails; the group finds the right code for that. */
    base_status (*progress)(void *state, bool *moved_p);
    /* Sleeps until there may be progress, an alarm, or the deadline (used when no other transport
     * of the group is busy). */
    void (*sleep)(void *state, double deadline);
    /* Ends a sleep, or one that is just beginning; called by another thread than the one in
     * `sleep`. NULL: sleeps are short. */
    void (*wake)(void *state);
    /* Sockets to watch when several transports wait together; NULL or 0: none, the group then
     * sleeps for half a millisecond at most. */
    int (*watch)(void *state, struct pollfd *fds, int room);
    base_status (*barrier)(void *state, double deadline); /* COMM_CAN_SHARE only */
    uint64_t (*bytes_sent)(const void *state);
    /* As comm_group_sending. NULL: not known. */
    bool (*sending)(const void *state, int peer, double *seconds_p, double *bytes_p);
};

extern const struct comm_transport *const comm_transport_registry[];
extern const size_t comm_transport_count;

#endif
