/* SPDX-License-Identifier: MIT
 *
 * The transport of a simulated world. Its connections are told of the death of a process.
 */
#ifndef SIM_TRANSPORT_H
#define SIM_TRANSPORT_H

#include "comm/transport.h"
#include "sim/world.h"

extern const struct comm_transport comm_transport_sim;

/* `silent`: the machine is gone, and nothing tells the peers that the connections are. */
void sim_transport_died(const struct sim_process *process, bool silent);

/* All ranks of that view were connected with all others. */
bool sim_transport_is_up(uint32_t view);
/* Has half of the hosts been hit, of a view that a coordinator may go by? That is the last one in
 * which all workers were connected, a newer one, or the one before, as long as the coordinator has
 * not heard of all of them. Hosts of guests that have come into none of these views do not count.
 */
bool sim_transport_half_is(bool hit(int host));

#endif
