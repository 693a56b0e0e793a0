/* SPDX-License-Identifier: MIT
 *
 * What the files of comm/ share: the insides of an endpoint and of a group.
 */
#ifndef COMM_COMM_PRIVATE_H
#define COMM_COMM_PRIVATE_H

#include <stdatomic.h>

#include "comm/host.h"
#include "comm/stream.h"
#include "comm/transport.h"

enum { COMM_MAX_TRANSPORTS = 4 };

struct comm_endpoint {
    struct comm_endpoint_setup setup;
    char job[40];
    struct comm_secret secret;
    struct comm_listener *listener; /* NULL: does not listen */
    int bell;              /* eventfd: readable once somebody was lost or it is cancelled */
    _Atomic bool rung;     /* … and nobody has looked since */
    _Atomic uint64_t lost; /* view << 32 | id, of the last loss */
    _Atomic bool cancelled;
};

/* Silences the bell. What it rang for is in `lost` and `cancelled`: look there afterwards. */
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
    uint32_t lost; /* a transport that sees a peer go before anybody is told puts its id here */
    bool cut;      /* … and it sees by itself that the link is dead, whatever others know */
};

/* BASE_OK, or the code of a loss or an end that was heard of: transports ask it when a sleep ends.
 * It silences the endpoint's bell. A transport whose connection broke returns BASE_ERR_PEER_LOST,
 * with the peer's id in group->lost: the group waits a moment for the word of somebody who knows,
 * since a survivor that leaves the group closes its connections, too. */
base_status comm_group_check(struct comm_group *group);
/* What a transport or a wait ended in becomes the group's end; returns its code. */
base_status comm_group_give_up(struct comm_group *group, base_status st, double deadline);

/* "worker 2 on host 1 at 10.0.0.2, worker 3 on host 1 at 10.0.0.2": the ranks whose bits are set.
 */
void comm_group_name(const struct comm_group *group, uint64_t ranks, char *text, size_t room);

#endif
