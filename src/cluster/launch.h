/* SPDX-License-Identifier: MIT
 *
 * How many hosts and workers there are, which of them this process is and where host 0 is: from
 * flags, else from the environment
 * of torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_*), PMI_* and
 * PMIX_*, or Slurm (SLURM_*), in this order. It says which it used.
 *
 * Launchers that start a process per worker leave several on one host: the first of them is the
 * host's agent and starts that many workers, the others have nothing to do (`idle`).
 */
#ifndef CLUSTER_LAUNCH_H
#define CLUSTER_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "comm/secret.h"
#include "comm/view.h"

enum { CLUSTER_PORT = 7117 };     /* host 0 listens here unless told otherwise */
enum { CLUSTER_HOST_NAME = 256 }; /* bytes of a host's name, with its end */

/* Flags; embedded in a command's arguments, with CLUSTER_FLAGS in its defaults and
 * {.table = cluster_options, .offset = …} in its option table. */
struct cluster_flags {
    int64_t workers;   /* -1: not given; 0: auto */
    int64_t num_nodes; /* 0: not given */
    int64_t rank;      /* -1: not given */
    int64_t port;      /* -1: not given; 0: any free one */
    int64_t min_workers;
    double silence, gather;
    const char *master_ip, *bind, *token_file, *transport;
};

#define CLUSTER_FLAGS                                                           \
    {                                                                           \
        .workers = -1, .rank = -1, .port = -1, .silence = 10.0, .gather = 120.0 \
    }

/* The options of struct cluster_flags. They are about this call; none is part of the job. */
extern const struct base_option cluster_options[];

struct cluster_launch {
    int workers;    /* workers on this host … */
    bool undecided; /* … which the caller is to choose (--workers auto): one until then */
    int hosts, host;
    bool idle;                      /* another process of this host is its agent */
    bool listens;                   /* host 0: other hosts may connect */
    char master[COMM_ADDRESS_TEXT]; /* numeric address of host 0 */
    uint16_t port;
    char bind[COMM_ADDRESS_TEXT]; /* numeric; "": taken from the connection to host 0 */
    bool has_secret;
    struct comm_secret secret;
    const char *transport; /* NULL: automatic */
    const char *source;    /* "flags", "torchrun", "Open MPI", … */
    int min_workers;       /* 0: as few as the program can go on with */
    int threads;           /* compute threads of each worker; 0: cores / workers */
    double silence;        /* seconds without a heartbeat until a worker counts as silent */
    double gather;         /* seconds that hosts and workers have to come at the start */
};

/* Finds all of it, resolves names and reads the token. Says so where the environment decided. */
base_status cluster_launch_find(const struct cluster_flags *flags, struct cluster_launch *launch_p);

/* The first name of a node list of Slurm: "gpu-[01-03,7],m1" → "gpu-01". */
base_status cluster_slurm_first(const char *list, char name[CLUSTER_HOST_NAME]);

#endif
