/* SPDX-License-Identifier: MIT
 *
 * paceline worker ID: what an agent starts; not for people. Its control connection is descriptor 3;
 * the id is there to be seen in process lists.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cluster/process.h"
#include "cluster/worker.h"

static base_status cmd_worker(void *args, const struct cli_positional *positional)
{
    struct stat file;

    (void)args;
    (void)positional;
    if (fstat(CLUSTER_CONTROL_FD, &file) != 0 || !S_ISSOCK(file.st_mode))
        return base_fail(BASE_ERR_USAGE, "workers are started by paceline itself: --workers W");
    return cluster_worker_run(CLUSTER_CONTROL_FD, cluster_program_registry);
}

const struct cli_command cli_command_worker = {
    .name = "worker",
    .help = "a worker of a job, started by its agent",
    .usage = "paceline worker ID",
    .min_positional = 1,
    .max_positional = 1,
    .hidden = true,
    .run = cmd_worker,
};
