/* SPDX-License-Identifier: MIT
 *
 * How many hosts and workers, who am I, where is host 0: from own flags, else from the environment
 * of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_*), PMI_* and
 * PMIX_*, or Slurm (SLURM_*), in this order. It says which it used.
 */
#ifndef CLUSTER_LAUNCH_H
#define CLUSTER_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "comm/secret.h"

/* Flags; embedded in a command's settings. */
struct cluster_flags {
    int64_t workers, num_nodes, rank, port;
    const char *master_ip, *token_file, *transport, *bind;
};

struct cluster_launch {
    int workers; /* on this host */
    int hosts, host;
    char master[64];
    uint16_t port;
    bool has_secret;
    struct comm_secret secret;
    const char *transport; /* NULL: automatic */
    const char *source;    /* "flags", "torchrun", "Open MPI", … */
    double patience;       /* seconds without a heartbeat until a worker counts as silent */
};

base_status cluster_launch_find(const struct cluster_flags *flags, struct cluster_launch *launch_p);

#endif
