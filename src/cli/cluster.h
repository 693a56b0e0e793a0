/* SPDX-License-Identifier: MIT
 *
 * Running a program on workers that are started by an agent of ours, or by the launcher of the
 * transport (mpirun).
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "cluster/agent.h"

/* *result_p: rank 0's result; NULL in other processes. */
base_status cli_cluster_run(const struct cluster_setup *setup, json_t **result_p);

#endif
