/* SPDX-License-Identifier: MIT */
#include "sim/agent.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sim/network.h"

static const double TURN = 0.1;

/* ---- the hands of its steward ---- */

static void say(void *agent, const struct cluster_message *m)
{
    struct sim_agent *a = agent;

    if (m->type == CLUSTER_EXITED && sim_network.bug == SIM_LOST_ACK && sim_random(4) == 0)
        return;
    sim_plug_send(a->up, m);
}

static void tell(void *agent, int slot, const struct cluster_message *m)
{
    const struct sim_agent *a = agent;

    sim_mail(&a->seats[slot]->down, m);
}

static base_status start(void *agent, int slot, uint32_t id, const json_t *order)
{
    struct sim_agent *a = agent;
    struct cluster_message m = {.type = CLUSTER_JOB,
                                .id = id,
                                .host = a->steward.host,
                                .slot = (uint16_t)slot,
                                .workers = 1};

    a->seats[slot] = sim_seat_open(a, slot, id);
    m.body = json_copy((json_t *)(uintptr_t)order);
    json_object_set_new(m.body, "threads", json_integer(1));
    sim_mail(&a->seats[slot]->down, &m);
    cluster_message_fini(&m);
    return BASE_OK;
}

static void kill_worker(void *agent, int slot)
{
    const struct sim_agent *a = agent;

    sim_process_kill(a->seats[slot]->about.process);
}

static void watch(void *agent, const struct comm_view *view, uint64_t slots)
{
    (void)agent;
    (void)view;
    (void)slots;
}

/* The word that the workers of a host share: all of them see it at once. */
static void alarm_host(void *agent, uint32_t view, uint32_t id)
{
    const struct sim_agent *a = agent;

    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        if (a->seats[i] != NULL && !sim_seat_is_gone(a->seats[i]) &&
            a->seats[i]->worker.endpoint != NULL)
            comm_endpoint_lost(a->seats[i]->worker.endpoint, view, id);
}

static void lost(void *agent, int slot)
{
    const struct sim_agent *a = agent;

    alarm_host(agent, a->steward.view.number, a->seats[slot]->about.id);
}

static void give_region(void *agent, int slot, const struct cluster_message *request)
{
    (void)agent;
    sim_fail("slot %d asks for shared memory %s, and there is none", slot, request->key);
}

static void forget_regions(void *agent, uint32_t oldest_view)
{
    (void)agent;
    (void)oldest_view;
}

static bool measure(void *agent, int slot, double now, struct cluster_load *load)
{
    const struct sim_agent *a = agent;

    (void)now;
    (void)load;
    return slot < 0 || !sim_seat_is_gone(a->seats[slot]);
}

static void send_agent(void *agent, uint32_t host, bool answer, const struct cluster_message *m)
{
    const struct sim_agent *a = agent;

    sim_tell("says %s to host %u", cluster_type_name(m->type), host);
    sim_plug_send(answer ? a->theirs[host] : a->own[host], m);
}

static void drop(void *agent)
{
    struct sim_agent *a = agent;

    sim_plug_close(&a->old);
    a->old = a->up;
    a->up = (struct sim_plug){0};
}

/* A coordinator that was only asleep finds this when it awakes. */
static void tell_old(struct sim_agent *a, uint32_t host)
{
    const struct cluster_message m = {
        .type = CLUSTER_LEAD, .host = host, .term = a->steward.succession.term};

    sim_plug_send(a->old, &m);
    sim_plug_close(&a->old);
}

static base_status follow(void *agent, uint32_t host, double now)
{
    struct sim_agent *a = agent;

    (void)now;
    if (a->up.line != NULL)
        drop(a);
    tell_old(a, host);
    snprintf(a->steward.coordinator, sizeof a->steward.coordinator, "host %u", host);
    if (host == a->steward.host) {
        sim_server_succeed(a);
        return BASE_OK;
    }
    a->up = a->theirs[host];
    a->theirs[host] = (struct sim_plug){0};
    sim_trace("host %u coordinates now", host);
    return a->up.line != NULL ? BASE_OK : base_fail(BASE_ERR_PEER_LOST, "host %u is gone", host);
}

static const struct cluster_hands hands = {.say = say,
                                           .tell = tell,
                                           .start = start,
                                           .kill = kill_worker,
                                           .watch = watch,
                                           .lost = lost,
                                           .alarm = alarm_host,
                                           .give_region = give_region,
                                           .forget_regions = forget_regions,
                                           .measure = measure,
                                           .send = send_agent,
                                           .drop = drop,
                                           .follow = follow};

/* ---- what it hears ---- */

static void hear_up(struct sim_agent *a, const struct sim_letter *letter, double now)
{
    if (!letter->closed)
        sim_check(cluster_steward_hear_coordinator(&a->steward, &letter->message, now) == BASE_OK,
                  "%s", base_message());
    else if (!a->steward.ended)
        cluster_steward_lose_coordinator(&a->steward, "the connection is closed", now);
}

/* Of another agent, on the connection at `plug`. */
static void hear_agent(struct sim_agent *a, struct sim_plug *plug, uint32_t host, bool own,
                       const struct sim_letter *letter, double now)
{
    if (!letter->closed &&
        cluster_steward_hear_agent(&a->steward, host, &letter->message, now) == BASE_OK)
        return;
    if (!sim_plug_is(*plug, letter)) /* it has become the coordinator's */
        return;
    sim_plug_close(plug);
    if (own)
        cluster_steward_closed(&a->steward, host);
}

static void hear_line(struct sim_agent *a, const struct sim_letter *letter, double now)
{
    if (sim_plug_is(a->up, letter)) {
        hear_up(a, letter, now);
        return;
    }
    for (uint32_t i = 0; i < SIM_MAX_HOSTS; i++) {
        if (sim_plug_is(a->own[i], letter)) {
            hear_agent(a, &a->own[i], i, true, letter, now);
            return;
        }
        if (sim_plug_is(a->theirs[i], letter)) {
            hear_agent(a, &a->theirs[i], i, false, letter, now);
            return;
        }
    }
    if (a->server != NULL)
        sim_server_hear(a, letter, now);
}

static void read_inbox(struct sim_agent *a, double now)
{
    struct sim_letter *letter;

    while ((letter = sim_box_take(&a->inbox)) != NULL) {
        if (letter->line != NULL)
            hear_line(a, letter, now);
        else
            sim_check(cluster_steward_hear_worker(&a->steward, letter->from, &letter->message,
                                                  now) == BASE_OK,
                      "%s", base_message());
        sim_letter_free(letter);
    }
}

/* ---- its turns ---- */

/* Has everything that the worker said been heard? */
static bool is_heard(const struct sim_agent *a, int slot)
{
    for (const struct sim_letter *l = a->inbox.first; l != NULL; l = l->next)
        if (l->line == NULL && l->from == slot)
            return false;
    return true;
}

/* A worker that is gone is reaped once its last words were heard. */
static void bury(struct sim_agent *a, int slot)
{
    const struct sim_worker *w = &a->seats[slot]->about;
    struct cluster_message m = {.type = CLUSTER_EXITED,
                                .id = w->id,
                                .pid = 1000 + sim_process_number(w->process),
                                .code = w->ended && w->st != BASE_OK,
                                .signal = w->ended ? 0 : 9};

    cluster_steward_bury(&a->steward, slot, &m);
    a->seats[slot] = NULL;
}

/* What cluster/peers.c does for the time without a coordinator. */
static void step_peers(struct sim_agent *a, double now)
{
    const struct cluster_succession *s = &a->steward.succession;

    for (uint32_t i = 0; i < SIM_MAX_HOSTS && a->server == NULL; i++) {
        if (s->stage == CLUSTER_FOLLOWING && a->own[i].line != NULL) {
            sim_plug_close(&a->own[i]);
            cluster_steward_closed(&a->steward, i);
        }
        if (a->own[i].line != NULL || !cluster_succession_wants(s, i))
            continue;
        switch (sim_dial(a, s->self, s->state.hosts[i].port, &a->dial_at[i], &a->own[i])) {
        case CLUSTER_CONNECTED:
            cluster_steward_opened(&a->steward, i, now);
            break;
        case CLUSTER_REFUSED:
            cluster_steward_dead(&a->steward, i, now);
            break;
        default:
            break;
        }
    }
}

static void turn(struct sim_agent *a)
{
    double now = base_now();

    cluster_steward_wake(&a->steward, now);
    sim_lines_break(a, now);
    read_inbox(a, now);
    for (int slot = 0; slot < COMM_MAX_WORKERS; slot++)
        if (a->seats[slot] != NULL && sim_seat_is_gone(a->seats[slot]) && is_heard(a, slot))
            bury(a, slot);
    step_peers(a, now);
    cluster_steward_tick(&a->steward, now);
    if (a->server != NULL)
        sim_server_step(a, now);
}

static void say_join(struct sim_agent *a, bool guest, int workers)
{
    struct cluster_message m = {.type = CLUSTER_JOIN,
                                .version = CLUSTER_PROTOCOL,
                                .host = guest ? CLUSTER_ANY_HOST : (uint32_t)a->host,
                                .port = sim_agent_port(a),
                                .workers = workers,
                                .pid = 1000 + sim_process_number(a->process)};

    snprintf(m.text, sizeof m.text, "host-%d", a->host);
    snprintf(m.address, sizeof m.address, "10.0.0.%d", a->host + 1);
    sim_plug_send(a->up, &m);
}

void sim_agent_live(struct sim_agent *a, bool guest, int workers)
{
    cluster_steward_init(&a->steward, &hands, a, a->steward.silence, base_now());
    a->steward.succeeds = a->server == NULL;
    say_join(a, guest, workers);
    while (!cluster_steward_over(&a->steward, base_now())) {
        turn(a);
        if (!cluster_steward_over(&a->steward, base_now()))
            sim_box_wait(&a->inbox, base_now() + TURN);
    }
    sim_trace("ends: %s", base_code_name(a->steward.code));
    for (int slot = 0; slot < COMM_MAX_WORKERS; slot++)
        if (a->seats[slot] != NULL && !a->seats[slot]->about.ended)
            kill_worker(a, slot);
    sim_agent_hang_up(a);
    a->ended = true;
}
