/* SPDX-License-Identifier: MIT
 *
 * What a person can ask a running job through its socket (cluster/status.h), and the coordinator's
 * answers:
 *
 *   {"ask": "status"}                               the object of `paceline status --json`
 *   {"ask": "set", "name": "k", "value": "4"}       that of `paceline set --json`
 *
 * or {"error": {"code", "message"}}. A change is answered once a worker has told from which step on
 * it holds, or after some seconds without that step.
 */
#ifndef CLUSTER_REQUESTS_H
#define CLUSTER_REQUESTS_H

#include <poll.h>

#include "cluster/coordinator.h"

struct cluster_requests;

base_status cluster_requests_open(const char *path, struct cluster_requests **requests_p);
/* Answers those that wait, then closes the socket. Accepts NULL. */
void cluster_requests_close(struct cluster_requests *requests);
int cluster_requests_watch(const struct cluster_requests *requests, struct pollfd *fds, int room);
void cluster_requests_step(struct cluster_requests *requests, struct cluster_coordinator *c,
                           double now);

/* A request, taken apart. Fields other than those above are an error. */
struct cluster_request {
    bool sets;                /* else it asks for the status */
    const char *name, *value; /* of a setting; they point into the object */
};
base_status cluster_request_read(const json_t *object, struct cluster_request *request_p);

#endif
