/* SPDX-License-Identifier: MIT
 *
 * The coordinator's connections, in the poll loop of its host's agent: the listener for other
 * hosts' agents, a mailbox each, the status socket, the events. Decides nothing.
 */
#ifndef CLUSTER_SERVER_H
#define CLUSTER_SERVER_H

#include <poll.h>

#include "cluster/agent.h"
#include "comm/mailbox.h"

struct cluster_server;

/* Takes over `fd`, at whose other end is host 0's own agent. */
base_status cluster_server_open(const struct cluster_setup *setup, int fd,
                                struct cluster_server **server_p);
/* The same on the host that has succeeded to coordinate (CLUSTER_LEADING). */
struct cluster_succession;
struct cluster_server_heir {
    const struct cluster_succession *succession;
    const struct cluster_launch *launch;
    const struct cluster_setup *setup; /* NULL: the host has joined the job */
    const struct cluster_program *const *programs;
    const char *address;        /* address of this host */
    struct comm_listener *door; /* its agent's listener, taken over even by a call that fails */
};
base_status cluster_server_succeed(const struct cluster_server_heir *heir, int fd,
                                   struct cluster_server **server_p);
/* Takes over a connection to that host's agent. */
void cluster_server_adopt(struct cluster_server *server, int host, struct comm_mailbox *box);
/* Sends what is still queued, for two seconds at most. Accepts NULL. */
void cluster_server_close(struct cluster_server *server);

uint16_t cluster_server_port(const struct cluster_server *server); /* 0: it does not listen */
int cluster_server_watch(struct cluster_server *server, struct pollfd *fds, int room);
base_status cluster_server_step(struct cluster_server *server);

bool cluster_server_over(const struct cluster_server *server);
const json_t *cluster_server_result(const struct cluster_server *server); /* or NULL */

#endif
