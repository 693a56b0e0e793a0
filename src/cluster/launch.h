/* SPDX-License-Identifier: MIT
 *
 * How many hosts and workers, who am I, where is host 0: from own flags, else from the environment
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

enum { CLUSTER_PORT = 7117 }; /* host 0 listens here unless told otherwise */

/* Flags; embedded in a command's arguments, with CLUSTER_FLAGS in its defaults and CLUSTER_OPTIONS
 * in its option table. */
struct cluster_flags {
    int64_t workers;   /* 0: not given */
    int64_t num_nodes; /* 0: not given */
    int64_t rank;      /* -1: not given */
    int64_t port;      /* -1: not given; 0: any free one */
    int64_t min_workers;
    double silence, gather;
    const char *master_ip, *bind, *token_file, *transport;
};

#define CLUSTER_FLAGS                                            \
    {                                                            \
        .rank = -1, .port = -1, .silence = 10.0, .gather = 120.0 \
    }

/* Rows of an option table (comm/transport.h must be included): `type` is the command's struct,
 * `flags` its struct cluster_flags. All are about this call: none is part of the job. */
#define CLUSTER_AT(type, flags, field) \
    (offsetof(type, flags) + offsetof(struct cluster_flags, field))
/* clang-format off: a row is easier to read in two lines than in ten */
#define CLUSTER_OPTIONS(type, flags)                                                            \
    {"workers",                                                                                 \
     "W",                                                                                       \
     BASE_INT,                                                                                  \
     CLUSTER_AT(type, flags, workers),                                                          \
     0,                                                                                         \
     COMM_MAX_WORKERS,                                                                          \
     "worker processes on this host; 0: one, or what the launcher says",                        \
     true,                                                                                      \
     .alias = "nproc-per-node"},                                                                \
        {"num-nodes",                                                                           \
         "H",                                                                                   \
         BASE_INT,                                                                              \
         CLUSTER_AT(type, flags, num_nodes),                                                    \
         0,                                                                                     \
         COMM_MAX_WORKERS,                                                                      \
         "hosts; start the same command on each, with its own --rank",                          \
         true,                                                                                  \
         .alias = "nnodes"},                                                                    \
        {"rank",                                                                                \
         "R",                                                                                   \
         BASE_INT,                                                                              \
         CLUSTER_AT(type, flags, rank),                                                         \
         -1,                                                                                    \
         COMM_MAX_WORKERS - 1,                                                                  \
         "which of the hosts this is, from 0",                                                  \
         true,                                                                                  \
         .alias = "node-rank"},                                                                 \
        {"master-ip",                                                                           \
         "IP",                                                                                  \
         BASE_TEXT,                                                                             \
         CLUSTER_AT(type, flags, master_ip),                                                    \
         0,                                                                                     \
         0,                                                                                     \
         "address or name of host 0",                                                           \
         true,                                                                                  \
         .alias = "master-addr"},                                                               \
        {"port",                                                                                \
         "P",                                                                                   \
         BASE_INT,                                                                              \
         CLUSTER_AT(type, flags, port),                                                         \
         -1,                                                                                    \
         UINT16_MAX,                                                                            \
         "host 0 listens here; 0: any free port; -1: 7117 if there are several hosts",          \
         true,                                                                                  \
         .alias = "master-port"},                                                               \
        {"bind",                                                                                \
         "IP",                                                                                  \
         BASE_TEXT,                                                                             \
         CLUSTER_AT(type, flags, bind),                                                         \
         0,                                                                                     \
         0,                                                                                     \
         "numeric address this host listens on, where it has several",                          \
         true},                                                                                 \
        {"token-file",                                                                          \
         "FILE",                                                                                \
         BASE_TEXT,                                                                             \
         CLUSTER_AT(type, flags, token_file),                                                   \
         0,                                                                                     \
         0,                                                                                     \
         "the job's token (see `paceline token`), needed beyond loopback; else PACELINE_TOKEN", \
         true},                                                                                 \
        {"transport",                                                                           \
         "T",                                                                                   \
         BASE_TEXT,                                                                             \
         CLUSTER_AT(type, flags, transport),                                                    \
         0,                                                                                     \
         0,                                                                                     \
         "how bytes move between workers, for all of them [the best for each pair]",            \
         true,                                                                                  \
         .choices = comm_transport_registry,                                                    \
         .choice_count = &comm_transport_count},                                                \
        {"min-workers",                                                                         \
         "N",                                                                                   \
         BASE_INT,                                                                              \
         CLUSTER_AT(type, flags, min_workers),                                                  \
         0,                                                                                     \
         COMM_MAX_WORKERS,                                                                      \
         "fewer left than this end the job; 0: every loss does",                                \
         true},                                                                                 \
        {"silence",                                                                             \
         "S",                                                                                   \
         BASE_REAL,                                                                             \
         CLUSTER_AT(type, flags, silence),                                                      \
         0.2,                                                                                   \
         3600,                                                                                  \
         "seconds without a sign of life until a worker or a host counts as lost",              \
         true},                                                                                 \
    {                                                                                           \
        "gather", "S", BASE_REAL, CLUSTER_AT(type, flags, gather), 1, 86400,                    \
            "seconds to wait until all hosts and workers are there", true                       \
    }
/* clang-format on */

struct cluster_launch {
    int workers; /* on this host */
    int hosts, host;
    bool idle;                      /* another process of this host is its agent */
    bool listens;                   /* host 0: other hosts may connect */
    char master[COMM_ADDRESS_TEXT]; /* numeric address of host 0 */
    uint16_t port;
    char bind[COMM_ADDRESS_TEXT]; /* numeric; "": found out from the connection to host 0 */
    bool has_secret;
    struct comm_secret secret;
    const char *transport; /* NULL: automatic */
    const char *source;    /* "flags", "torchrun", "Open MPI", … */
    int min_workers;       /* 0: all of the first view */
    int threads;           /* of each worker; 0: cores / workers */
    double silence;        /* seconds without a heartbeat until a worker counts as silent */
    double gather;         /* seconds until all hosts and workers are there */
};

/* Resolves names, reads the token. Where the environment decided, it says so. */
base_status cluster_launch_find(const struct cluster_flags *flags, struct cluster_launch *launch_p);

#endif
