/* SPDX-License-Identifier: MIT
 *
 * A Unix socket at which processes of the same user (SO_PEERCRED) ask a running job: one JSON
 * object from the client, which then says no more, and one JSON object back. `paceline status` and
 * `paceline set` are the clients; requests.h has what can be asked.
 */
#ifndef CLUSTER_STATUS_H
#define CLUSTER_STATUS_H

#include <poll.h>

#include "base/json.h"

struct cluster_status;

/* Replaces a socket that an earlier job left at this path. */
base_status cluster_status_open(const char *path, struct cluster_status **status_p);
void cluster_status_close(struct cluster_status *status); /* accepts NULL; removes the socket */

int cluster_status_watch(const struct cluster_status *status, struct pollfd *fds, int room);
/* Takes the next request that is complete, without waiting; false: there is none. *client_p: whom
 * to answer, now or later. *request_p: the caller owns it; NULL: it was no JSON object. A client
 * that does not finish asking within two seconds is cut off. */
bool cluster_status_next(struct cluster_status *status, double now, int *client_p,
                         json_t **request_p);
void cluster_status_answer(struct cluster_status *status, int client, const json_t *answer);

/* The client's side. */
base_status cluster_status_ask(const char *path, const json_t *request, double deadline,
                               json_t **answer_p);

#endif
