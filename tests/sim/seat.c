/* SPDX-License-Identifier: MIT */
#include "sim/seat.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

static void say(void *context, const struct cluster_message *m)
{
    struct sim_seat *s = context;

    sim_mail(&s->up, m);
}

static void hear_letters(struct sim_seat *s)
{
    struct sim_letter *letter;

    base_mutex_lock(&s->worker.lock);
    while ((letter = sim_box_take(&s->inbox)) != NULL) {
        if (letter->closed)
            cluster_worker_lose_agent(&s->worker, BASE_ERR_PEER_LOST, "the agent is gone");
        else
            cluster_worker_hear(&s->worker, &letter->message, -1);
        sim_letter_free(letter);
    }
    base_mutex_unlock(&s->worker.lock);
}

static void *control(void *argument)
{
    struct sim_seat *s = argument;
    double beat = 0;

    while (!s->closing) {
        struct cluster_message m;

        hear_letters(s);
        if (s->worker.stage == CLUSTER_WORKER_STARTED && base_now() >= beat) {
            cluster_worker_heartbeat(&s->worker, &m);
            sim_mail(&s->up, &m);
            beat = base_now() + s->worker.beat;
        }
        sim_box_wait(&s->inbox,
                     s->worker.stage == CLUSTER_WORKER_STARTED ? beat : base_now() + 0.25);
    }
    return NULL;
}

static void *run_program(void *argument)
{
    struct sim_seat *s = argument;
    const struct cluster_program *programs[] = {s->program, NULL};

    s->about.st = cluster_worker_serve(&s->worker, programs);
    snprintf(s->about.words, sizeof s->about.words, "%s", base_message());
    s->about.ended = true;
    s->closing = true;
    sim_trace("ends: %s", base_code_name(s->about.st));
    base_world->wake(&s->inbox);
    base_world->wake(s->up.to);
    return NULL;
}

struct sim_seat *sim_seat_new(uint32_t id, int host, const struct cluster_program *program,
                              struct sim_pipe up)
{
    struct sim_seat *s = base_calloc(1, sizeof *s);
    char name[SIM_NAME];

    snprintf(name, sizeof name, "worker %u", id);
    s->about = (struct sim_worker){.id = id,
                                   .host = host,
                                   .process = sim_process_new(name),
                                   .slowness = sim_random(3) == 0 ? sim_spread(1, 20) : 1};
    s->program = program;
    s->up = up;
    s->down = (struct sim_pipe){.to = &s->inbox, .from_host = host, .to_host = host};
    s->worker.outlet = (struct cluster_outlet){say, s};
    cluster_worker_init(&s->worker);
    sim_process_run(s->about.process, "control", control, s);
    sim_process_run(s->about.process, "program", run_program, s);
    return s;
}

bool sim_seat_is_gone(const struct sim_seat *s)
{
    return s->about.ended || !sim_process_is_alive(s->about.process);
}
