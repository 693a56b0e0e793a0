/* SPDX-License-Identifier: MIT
 *
 * A Unix socket that answers every process of the same user (SO_PEERCRED) with one JSON object
 * and closes. It is only ever written to.
 */
#ifndef CLUSTER_STATUS_H
#define CLUSTER_STATUS_H

#include "base/json.h"

/* Replaces a socket that an earlier job left at this path. */
base_status cluster_status_listen(const char *path, int *fd_p);
/* Answers every client that waits, without waiting itself. */
void cluster_status_answer(int fd, const json_t *status);
void cluster_status_close(const char *path, int fd); /* accepts -1; removes the socket */

base_status cluster_status_ask(const char *path, double deadline, json_t **status_p);

#endif
