/* SPDX-License-Identifier: MIT
 *
 * The coordinator's connections, in the poll loop of host 0's agent: the listener for other hosts'
 * agents, a mailbox each, the status socket, the events. Decides nothing.
 */
#ifndef CLUSTER_SERVER_H
#define CLUSTER_SERVER_H

#include <poll.h>

#include "cluster/agent.h"

struct cluster_server;

/* fd: host 0's own agent is at the other end of it; taken over. */
base_status cluster_server_open(const struct cluster_setup *setup, int fd,
                                struct cluster_server **server_p);
/* What is still to be said is said, for two seconds at most. Accepts NULL. */
void cluster_server_close(struct cluster_server *server);

int cluster_server_watch(struct cluster_server *server, struct pollfd *fds, int room);
base_status cluster_server_step(struct cluster_server *server);

bool cluster_server_over(const struct cluster_server *server);
const json_t *cluster_server_result(const struct cluster_server *server); /* or NULL */

#endif
