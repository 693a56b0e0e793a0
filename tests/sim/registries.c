/* SPDX-License-Identifier: MIT
 *
 * In place of the generated registries: a simulated world has its own transport and nothing else.
 */
#include "sim/transport.h"

const struct comm_transport *const comm_transport_registry[] = {&comm_transport_sim, NULL};
const size_t comm_transport_count = 1;
