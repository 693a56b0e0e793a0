/* SPDX-License-Identifier: MIT */
#include "cli/cluster.h"

#include <string.h>

#include "base/registry.h"
#include "cluster/worker.h"
#include "comm/transport.h"

base_status cli_cluster_run(const struct cluster_setup *setup, json_t **result_p)
{
    base_status st = BASE_OK;
    const struct comm_transport *transport = NULL;
    const struct cluster_program *program;
    int threads = setup->launch.threads;

    *result_p = NULL;
    if (setup->launch.undecided)
        TRY(base_fail(BASE_ERR_USAGE, "--workers auto is for train; say how many workers"));
    if (setup->launch.transport != NULL)
        TRY(base_registry_find("transport", setup->launch.transport, comm_transport_registry,
                               comm_transport_count, &transport));
    if (transport == NULL || transport->start == NULL)
        return cluster_agent_run(setup, result_p);
    if (strcmp(setup->launch.source, "flags") == 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--transport %s needs its own launcher: mpirun -n W paceline …",
                      transport->name));
    TRY(base_registry_find("program", setup->program, cluster_program_registry,
                           cluster_program_count, &program));
    TRY(cluster_worker_run_native(transport, program, setup->job, threads > 0 ? threads : 1,
                                  result_p));
out:
    return st;
}
