/* SPDX-License-Identifier: MIT */
#include "sim/faults.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sim/transport.h"

enum { MAX_FAULTS = 6 };

static struct {
    const struct sim_job *job;
    int count;
    double at[MAX_FAULTS];
    bool hit[SIM_MAX_HOSTS];
    bool blurred; /* a host was hit otherwise than by a death that its kernel tells */
    bool stopped;
} faults;

static struct sim_worker *any_worker(void)
{
    int count, living = 0;
    struct sim_worker *w = sim_workers(&count), *chosen = NULL;

    for (int i = 0; i < count; i++) /* each with the same chance */
        if (!w[i].ended && sim_process_is_alive(w[i].process) &&
            sim_random((uint32_t)++living) == 0)
            chosen = &w[i];
    return chosen;
}

static void hit_worker(void)
{
    struct sim_worker *w = any_worker();

    if (w == NULL)
        return;
    switch (sim_random(4)) {
    case 0:
        sim_process_stall(w->process, sim_spread(1e-3, 20));
        break;
    case 1:
        sim_process_kill(w->process);
        break;
    default: /* in the midst of something */
        sim_process_kill_at(w->process, (uint64_t)sim_spread(1, 2000));
        break;
    }
}

static int any_host(void)
{
    return (int)sim_random((uint32_t)faults.job->hosts);
}

static void hit_host(void)
{
    int host = sim_random(3) == 0 ? sim_coordinating_host() : any_host(), other = any_host();
    uint32_t kind = sim_random(5);
    double until;

    /* Hosts that do not reach each other in the beginning are a firewall, which ends the job. */
    for (double patience = base_now() + 1; kind > 2 && !sim_transport_is_up(1);) {
        if (base_now() > patience)
            return;
        base_sleep_until(base_now() + 1e-3);
    }
    until = base_now() + sim_spread(0.01, 30);
    faults.hit[host] = true;
    faults.blurred |= kind != 1 || !sim_transport_is_up(1);
    faults.hit[other] |= kind == 4;
    switch (kind) {
    case 0:
        sim_process_stall(sim_agent_process(host), sim_spread(1e-2, 20));
        break;
    case 1:
        sim_process_kill(sim_agent_process(host));
        break;
    case 2:
        sim_host_kill(host);
        break;
    case 3:
        sim_network_isolate(host, sim_random(2) == 0 ? INFINITY : until);
        break;
    default:
        sim_network_cut(host, other, sim_random(2) == 0 ? INFINITY : until);
        break;
    }
}

static void stop(void)
{
    faults.stopped = true;
    sim_job_stop();
}

static void *fate(void *argument)
{
    (void)argument;
    for (int i = 0; i < faults.count; i++) {
        base_sleep_until(faults.at[i]);
        if (sim_random(24) == 0)
            stop();
        else if (sim_random(6) == 0)
            sim_job_change();
        else if (sim_random(faults.job->hosts > 2 ? 2 : 4) == 0)
            hit_host();
        else
            hit_worker();
    }
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

void sim_faults_begin(const struct sim_job *job)
{
    double now = base_now();

    faults.job = job;
    faults.count =
        sim_random(8) == 0 ? 0 : 1 + (int)sim_random(sim_random(4) == 0 ? MAX_FAULTS : 2);
    for (int i = 0; i < faults.count; i++)
        faults.at[i] = now + sim_spread(2e-3, 3);
    qsort(faults.at, (size_t)faults.count, sizeof faults.at[0], by_time);
    sim_process_run(sim_process_new("fate"), "fate", fate, NULL);
}

bool sim_faults_stopped(void)
{
    return faults.stopped;
}

bool sim_faults_hit(int host)
{
    return faults.hit[host];
}

bool sim_faults_excuse(void)
{
    int count, whole = 0, hits = 0;
    const struct sim_worker *w = sim_workers(&count);

    for (int i = 0; i < count; i++)
        whole += sim_process_is_alive(w[i].process) && !faults.hit[w[i].host] && w[i].joined;
    for (int i = 0; i < faults.job->hosts; i++)
        hits += faults.hit[i];
    return whole == 0 || 2 * hits >= faults.job->hosts || sim_transport_half_is(sim_faults_hit) ||
           (faults.hit[0] && faults.blurred);
}
