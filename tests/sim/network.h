/* SPDX-License-Identifier: MIT
 *
 * The simulated network: what lies between hosts. Messages of groups go through it
 * (sim/transport.c), and so does what agents and the coordinator say (sim/hosts.c). Between each
 * pair of hosts there is a latency and a bandwidth; a link may be cut for a while or for good, in
 * which case what was sent arrives when it is whole again.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

enum { SIM_MAX_HOSTS = 16 };

/* Bugs that are put back on purpose: the suite must find each. */
enum sim_bug {
    SIM_SOUND,
    SIM_LOST_ACK,     /* now and then the news that a worker was reaped gets lost */
    SIM_MISSED_FENCE, /* a connection does not know of which view it is */
    SIM_DOUBLE_COUNT, /* a step that failed has left its samples in the weights */
};

struct sim_network {
    int hosts;
    double latency, inside; /* seconds, between hosts and inside of one */
    double bandwidth;       /* bytes a second, of each pair of workers */
    double jitter;          /* of the latency, a share */
    size_t window;          /* bytes under way on a channel; 0: a receiver must be waiting */
    enum sim_bug bug;
};

extern struct sim_network sim_network;

/* Of a message that is sent now: when it arrives, if no link is cut. */
double sim_network_delay(int from, int to, size_t bytes);
void sim_network_cut(int a, int b, double until); /* both directions; INFINITY: for good */
void sim_network_isolate(int host, double until);
/* Until when the link is cut; 0: it is whole. */
double sim_network_cut_until(int a, int b);
double sim_network_cut_since(int a, int b);
/* When a connection over the link breaks because it is cut: the kernel's probes get no answer.
 * INFINITY: it is whole. */
double sim_network_breaks_at(int a, int b);

#endif
