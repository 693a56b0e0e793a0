/* SPDX-License-Identifier: MIT
 *
 * In place of the generated registries: a simulated world has its own transport and its own tasks,
 * and nothing else.
 */
#include "sim/counting.h"
#include "sim/transport.h"

const struct comm_transport *const comm_transport_registry[] = {&comm_transport_sim, NULL};
const size_t comm_transport_count = 1;

const struct train_task *const train_task_registry[] = {&sim_task_counting, &sim_task_sweeping,
                                                        &sim_task_layers, NULL};
const size_t train_task_count = 3;
