/* SPDX-License-Identifier: MIT */
#include "sim/network.h"

#include <math.h>

#include "base/clock.h"
#include "sim/world.h"

struct sim_network sim_network;

static const double KEEPALIVE = 10; /* seconds */

static struct {
    double since, until;
} cuts[SIM_MAX_HOSTS][SIM_MAX_HOSTS];

double sim_network_delay(int from, int to, size_t bytes)
{
    double base = from == to ? sim_network.inside : sim_network.latency;

    return base * (1 + sim_network.jitter * sim_unit()) + (double)bytes / sim_network.bandwidth;
}

void sim_network_cut(int a, int b, double until)
{
    if (a == b)
        return;
    sim_trace("the link between hosts %d and %d is cut until %g s", a, b, until);
    if (sim_network_cut_until(a, b) == 0)
        cuts[a][b].since = cuts[b][a].since = base_now();
    cuts[a][b].until = cuts[b][a].until = fmax(until, cuts[a][b].until);
}

void sim_network_isolate(int host, double until)
{
    for (int other = 0; other < sim_network.hosts; other++)
        sim_network_cut(host, other, until);
}

double sim_network_cut_until(int a, int b)
{
    return cuts[a][b].until > base_now() ? cuts[a][b].until : 0;
}

double sim_network_breaks_at(int a, int b)
{
    return sim_network_cut_until(a, b) > 0 ? cuts[a][b].since + KEEPALIVE : INFINITY;
}

double sim_network_cut_since(int a, int b)
{
    return cuts[a][b].since;
}
