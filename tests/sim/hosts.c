/* SPDX-License-Identifier: MIT */
#include "sim/hosts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sim/agent.h"
#include "sim/transport.h"

static struct {
    const struct sim_job *job;
    struct sim_end *end;
    struct sim_agent agents[SIM_MAX_HOSTS];
    struct sim_seat *seats[SIM_MAX_WORKERS]; /* of all workers that ever were */
    struct sim_worker workers[SIM_MAX_WORKERS];
    int worker_count;
} here;

/* ---- who is who ---- */

struct sim_agent *sim_agent_at(uint16_t port)
{
    sim_check(port >= 1 && port <= here.job->hosts, "no agent listens at port %u", port);
    return &here.agents[port - 1];
}

uint16_t sim_agent_port(const struct sim_agent *agent)
{
    return (uint16_t)(agent->host + 1);
}

struct sim_worker *sim_workers(int *count_p)
{
    for (int i = 0; i < here.worker_count; i++)
        here.workers[i] = here.seats[i]->about;
    *count_p = here.worker_count;
    return here.workers;
}

int sim_host_of(uint32_t id)
{
    for (int i = 0; i < here.worker_count; i++)
        if (here.seats[i]->about.id == id)
            return here.seats[i]->about.host;
    sim_fail("there is no worker %u", id);
}

struct sim_worker *sim_worker_self(void)
{
    for (int i = 0; i < here.worker_count; i++)
        if (here.seats[i]->about.process == sim_process_self())
            return &here.seats[i]->about;
    return NULL;
}

struct sim_process *sim_agent_process(int host)
{
    return here.agents[host].process;
}

struct sim_seat *sim_seat_open(struct sim_agent *a, int slot, uint32_t id)
{
    struct sim_pipe up = {.to = &a->inbox, .from = slot, .from_host = a->host, .to_host = a->host};
    struct sim_seat *seat;

    sim_check(here.worker_count < SIM_MAX_WORKERS, "too many workers were started");
    seat = sim_seat_new(id, a->host, here.job->program, up);
    here.seats[here.worker_count++] = seat;
    return seat;
}

/* ---- what befalls hosts ---- */

static bool power_cut;

static void tell_death(struct sim_process *p)
{
    sim_transport_died(p, power_cut);
    for (int i = 0; i < here.worker_count; i++) /* its agent watches it */
        if (here.seats[i]->about.process == p)
            base_world->wake(here.seats[i]->up.to);
    for (int i = 0; i < here.job->hosts && !power_cut; i++)
        if (here.agents[i].process == p)
            sim_agent_hang_up(&here.agents[i]);
}

void sim_host_kill(int host)
{
    const struct sim_agent *a = &here.agents[host];

    power_cut = true;
    sim_network_isolate(host, INFINITY);
    for (int slot = 0; slot < COMM_MAX_WORKERS; slot++)
        if (a->seats[slot] != NULL)
            sim_process_kill(a->seats[slot]->about.process);
    sim_process_kill(a->process);
    power_cut = false;
}

void sim_job_stop(void)
{
    struct cluster_message m = {.type = CLUSTER_STOP};

    sim_trace("a person asks to stop");
    cluster_message_text(&m, "SIGINT on host 0");
    if (sim_process_is_alive(here.agents[0].process))
        sim_plug_send(here.agents[0].up, &m);
}

cluster_check *sim_job_check(void)
{
    return here.job->program->check;
}

void sim_job_change(void)
{
    struct sim_agent *a = &here.agents[sim_coordinating_host()];
    const char *name;
    char value[32];
    uint32_t number;

    if (here.job->change == NULL || !here.job->change(&name, value, sizeof value) ||
        a->server == NULL || a->ended || !sim_process_is_alive(a->process))
        return;
    if (cluster_coordinator_set(a->server->coordinator, name, value, base_now(), &number) ==
        BASE_OK)
        sim_trace("a person sets %s=%s, change %u", name, value, number);
    else
        sim_trace("a person cannot set %s=%s: %s", name, value, base_message());
}

/* ---- the job ---- */

void sim_note_end(const struct cluster_coordinator *coordinator, const struct cluster_message *m)
{
    here.end->over = true;
    here.end->code = (base_code)m->code;
    snprintf(here.end->text, sizeof here.end->text, "%s", m->text);
    here.end->result = json_incref((json_t *)(uintptr_t)cluster_coordinator_result(coordinator));
}

/* A guest comes later, and finds the coordinator where it was in the beginning; if there is none it
 * has nothing to do. */
static void *live(void *argument)
{
    struct sim_agent *a = argument, *first = &here.agents[0];
    bool guest = a->host >= here.job->hosts - here.job->guests;

    if (guest) {
        base_sleep_until(base_now() + here.job->joins_after * (1 + sim_unit()));
        a->ended = first->ended || !sim_process_is_alive(first->process) ||
                   sim_network_cut_until(a->host, 0) > 0;
    }
    if (a->ended)
        return NULL;
    if (a->host > 0) {
        a->up = sim_line_new(a, first);
        sim_server_take_in(first->server, (struct sim_plug){a->up.line, 1});
    }
    a->steward.silence = here.job->silence;
    sim_agent_live(a, guest, here.job->workers[a->host]);
    return NULL;
}

static void open_agents(const struct cluster_coordinator_setup *setup)
{
    char name[SIM_NAME];

    for (int i = 0; i < here.job->hosts; i++) {
        snprintf(name, sizeof name, "agent %d", i);
        here.agents[i].host = i;
        here.agents[i].process = sim_process_new(name);
    }
    sim_server_open(&here.agents[0], setup);
    for (int i = 0; i < here.job->hosts; i++)
        sim_process_run(here.agents[i].process, "agent", live, &here.agents[i]);
}

static bool all_ended(void)
{
    bool all = true;

    for (int i = 0; i < here.job->hosts; i++)
        all &= here.agents[i].ended || !sim_process_is_alive(here.agents[i].process);
    for (int i = 0; i < here.worker_count; i++)
        all &= sim_seat_is_gone(here.seats[i]);
    return all;
}

void sim_job_run(const struct sim_job *job, struct sim_end *end_p)
{
    const struct cluster_coordinator_setup setup = {.name = "simulated",
                                                    .program = job->program->name,
                                                    .job = job->job,
                                                    .check = job->program->check,
                                                    .hosts = job->hosts - job->guests,
                                                    .min_workers = job->min_workers,
                                                    .least = 1,
                                                    .joins = true,
                                                    .restarts = job->restarts,
                                                    .silence = job->silence,
                                                    .gather = 60};

    *end_p = (struct sim_end){0};
    here.job = job;
    here.end = end_p;
    sim_on_death(tell_death);
    open_agents(&setup);
    while (!all_ended())
        base_sleep_until(base_now() + 0.1);
}
