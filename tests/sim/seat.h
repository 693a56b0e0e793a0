/* SPDX-License-Identifier: MIT
 *
 * A worker's process in the simulated world: the real program's side (cluster/worker.c), with a
 * control thread that hears letters instead of a mailbox.
 */
#ifndef SIM_SEAT_H
#define SIM_SEAT_H

#include "cluster/worker_private.h"
#include "sim/hosts.h"
#include "sim/post.h"

struct sim_seat {
    struct sim_worker about;
    struct cluster_worker worker;
    struct sim_box inbox;
    struct sim_pipe up, down; /* to its agent and back */
    const struct cluster_program *program;
    bool closing;
};

/* Starts its threads. `up`: the way to the agent, whose box is woken when the process ends. */
struct sim_seat *sim_seat_new(uint32_t id, int host, const struct cluster_program *program,
                              struct sim_pipe up);
/* Its process has ended or was killed. */
bool sim_seat_is_gone(const struct sim_seat *seat);

#endif
