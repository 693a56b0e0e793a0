/* SPDX-License-Identifier: MIT
 *
 * How other workers reach this one, in every view: its id, the words of its host, its listener for
 * data connections of other hosts, the job's secret, and a way to get shared memory by name. Made
 * once per process; groups (comm/group.h) are made from it, one per view.
 */
#ifndef COMM_ENDPOINT_H
#define COMM_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct comm_host;
struct comm_secret; /* comm/secret.h */

struct comm_endpoint_setup {
    uint32_t id;
    const char *job;        /* the job's random name: other jobs' connections are refused */
    struct comm_host *host; /* NULL: no shared memory (mpi, or alone) */
    const char *listen;     /* numeric address for data connections; NULL: none */
    const struct comm_secret *secret; /* NULL: plain tcp, which is allowed on loopback only */
    /* A file descriptor of the shared memory that this host's workers know as `key`. The first
     * worker to ask makes it, `bytes` zeros. Keys "view/N/…" end with view N. */
    base_status (*region)(void *context, const char *key, size_t bytes, int *fd_p);
    void *context;
};

struct comm_endpoint;

base_status comm_endpoint_open(const struct comm_endpoint_setup *setup,
                               struct comm_endpoint **endpoint_p);
void comm_endpoint_close(struct comm_endpoint *endpoint); /* accepts NULL */

uint16_t comm_endpoint_port(const struct comm_endpoint *endpoint); /* 0: does not listen */

/* From any thread: worker `id` left view `view`. Every wait of a group of that view or an older
 * one ends in BASE_ERR_PEER_LOST. Waits in shared memory are ended by comm_host_alarm; this ends
 * the ones that sleep on sockets. */
void comm_endpoint_lost(struct comm_endpoint *endpoint, uint32_t view, uint32_t id);
/* The same where no worker is lost but the job ends: waits end in BASE_ERR_INTERRUPTED. */
void comm_endpoint_cancel(struct comm_endpoint *endpoint);

/* From any thread: tells that view `view` exists. A comm_poll of an older group returns early;
 * other waits go on. */
void comm_endpoint_newer(struct comm_endpoint *endpoint, uint32_t view);

/* The last worker lost from view `view` or a later one, as told by comm_endpoint_lost or by
 * comm_host_alarm; 0: none. */
uint32_t comm_endpoint_last_lost(const struct comm_endpoint *endpoint, uint32_t view);

/* Memory that all workers of this host see under `key`. The first worker to ask decides its
 * size; asking for another size is an error. */
struct comm_shared {
    void *at;
    size_t bytes;
};
base_status comm_shared_open(struct comm_endpoint *endpoint, const char *key, size_t bytes,
                             struct comm_shared *shared_p);
void comm_shared_close(struct comm_shared *shared); /* accepts what was never opened */

#endif
