/* SPDX-License-Identifier: MIT
 *
 * An agent's connections with other hosts' agents, for the time when there is no coordinator: a
 * listener from the beginning of the job on, and those that its succession wants. Decides nothing.
 */
#ifndef CLUSTER_PEERS_H
#define CLUSTER_PEERS_H

#include <poll.h>

#include "cluster/launch.h"
#include "cluster/steward.h"

struct cluster_peers;

/* Listens at `address` on a port that is free. */
base_status cluster_peers_open(const struct cluster_launch *launch, const char *address,
                               struct cluster_peers **peers_p);
void cluster_peers_close(struct cluster_peers *peers); /* accepts NULL */
uint16_t cluster_peers_port(const struct cluster_peers *peers);

int cluster_peers_watch(struct cluster_peers *peers, struct pollfd *fds, int room);
/* Accepts and makes connections, and tells the steward what came. */
void cluster_peers_step(struct cluster_peers *peers, struct cluster_steward *steward, double now);
/* Sends over the connection that the other agent has opened (`answer`), else over this host's own.
 */
void cluster_peers_send(struct cluster_peers *peers, uint32_t host, bool answer,
                        const struct cluster_message *message);

/* Hands the connection that `host` has opened (`theirs`), or this host's own to it, to the caller;
 * NULL: there is none. */
struct comm_mailbox *cluster_peers_take(struct cluster_peers *peers, uint32_t host, bool theirs);
struct comm_listener *cluster_peers_take_listener(struct cluster_peers *peers);

#endif
