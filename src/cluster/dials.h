/* SPDX-License-Identifier: MIT
 *
 * Connections to other hosts' agents that are being made, in the poll loop of this one: at most one
 * a host, tried again while it is asked for. Also how a host's agent is found to be dead: its
 * kernel refuses the connection, since the port is open as long as the agent lives.
 */
#ifndef CLUSTER_DIALS_H
#define CLUSTER_DIALS_H

#include "cluster/message.h"
#include "comm/stream.h"

struct cluster_dials {
    struct comm_tls *tls; /* NULL: plain */
    struct {
        struct comm_connecting *connecting; /* NULL: no attempt is under way */
        double retry_at, deadline;
    } hosts[CLUSTER_MAX_HOSTS];
};

enum cluster_dialled { CLUSTER_DIALLING, CLUSTER_CONNECTED, CLUSTER_REFUSED };

/* Without a secret (NULL) connections are plain. */
base_status cluster_dials_init(struct cluster_dials *dials, const struct comm_secret *secret);
void cluster_dials_fini(struct cluster_dials *dials);

/* Begins or moves on the connection to hello->to; once CONNECTED the caller owns *stream_p.
 * After a failure other than a refusal a later call tries again. */
enum cluster_dialled cluster_dials_try(struct cluster_dials *dials, const char *address,
                                       uint16_t port, const struct comm_hello *hello, double now,
                                       struct comm_stream **stream_p);
void cluster_dials_drop(struct cluster_dials *dials, int host); /* gives up an attempt */
int cluster_dials_watch(const struct cluster_dials *dials, struct pollfd *fds, int room);

#endif
