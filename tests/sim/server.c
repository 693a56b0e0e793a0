/* SPDX-License-Identifier: MIT
 *
 * What cluster/server.c does for the coordinator, with lines instead of mailboxes. Two invariants
 * of elections are checked here: a term has one coordinator, and a number has one view.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/agent.h"

static const double TICK = 0.1;
enum { MAX_TERMS = 4096 };

static const struct sim_agent *leads[MAX_TERMS]; /* by term */
static struct published {
    struct comm_view view;
    struct published *next;
} * published;

static struct sim_server *make(struct sim_agent *a)
{
    struct sim_server *s = base_calloc(1, sizeof *s);

    a->server = s;
    a->up = sim_line_new(a, a);
    s->links[0] = (struct sim_plug){a->up.line, 1};
    return s;
}

static int elections, coordinating;

int sim_elections(void)
{
    return elections;
}

int sim_coordinating_host(void)
{
    return coordinating;
}

static void lead(const struct sim_agent *a, uint32_t term)
{
    elections++;
    coordinating = a->host;
    sim_trace("host %d coordinates in term %u", a->host, term);
    sim_check(term < MAX_TERMS, "term %u", term);
    sim_check(leads[term] == NULL, "hosts %d and %d both coordinate in term %u",
              leads[term] != NULL ? leads[term]->host : 0, a->host, term);
    leads[term] = a;
}

void sim_server_open(struct sim_agent *a, const struct cluster_coordinator_setup *setup)
{
    make(a)->coordinator = cluster_coordinator_new(setup, base_now());
}

/* A link to that host's agent, which is led from now on. */
static void adopt(struct sim_server *s, int host, struct sim_plug plug)
{
    int link = 0;

    while (link < SIM_LINKS && s->links[link].line != NULL)
        link++;
    if (link == SIM_LINKS || !cluster_coordinator_lead(s->coordinator, host, link))
        sim_plug_close(&plug);
    else
        s->links[link] = plug;
}

void sim_server_succeed(struct sim_agent *a)
{
    const struct cluster_succession *from = &a->steward.succession;
    struct sim_server *s = make(a);
    double now = base_now();

    lead(a, from->term);
    s->coordinator =
        cluster_coordinator_succeed(&from->state, sim_job_check(), from->self, from->term, now);
    for (int i = 0; i < from->state.host_count; i++)
        if (from->hosts[i].dead)
            cluster_coordinator_dead(s->coordinator, i, now);
    for (int i = 0; i < from->state.host_count; i++) {
        struct sim_plug plug = a->own[i];

        a->own[i] = (struct sim_plug){0};
        if (plug.line != NULL)
            adopt(s, i, plug);
    }
    for (int i = 0; i < SIM_MAX_HOSTS; i++) {
        sim_plug_close(&a->own[i]);
        sim_plug_close(&a->theirs[i]);
    }
}

static void cut(struct sim_server *s, int link, const char *why, double now)
{
    if (!cluster_coordinator_over(s->coordinator))
        cluster_coordinator_gone(s->coordinator, link, why, now);
    sim_plug_close(&s->links[link]);
}

void sim_server_hear(struct sim_agent *a, const struct sim_letter *letter, double now)
{
    struct sim_server *s = a->server;

    for (int link = 0; link < SIM_LINKS; link++) {
        if (!sim_plug_is(s->links[link], letter))
            continue;
        if (letter->closed)
            cut(s, link, "was lost", now);
        else if (cluster_coordinator_hear(s->coordinator, link, &letter->message, now) != BASE_OK)
            cut(s, link, base_message(), now);
        return;
    }
}

static void seek_hosts(struct sim_agent *a)
{
    struct sim_server *s = a->server;
    uint16_t port;

    for (int i = 0; i < cluster_coordinator_hosts(s->coordinator); i++) {
        struct sim_plug plug;

        if (!cluster_coordinator_seeks(s->coordinator, i))
            continue;
        cluster_coordinator_address(s->coordinator, i, &port);
        switch (sim_dial(a, a->steward.host, port, &s->dial_at[i], &plug)) {
        case CLUSTER_CONNECTED:
            adopt(s, i, plug);
            break;
        case CLUSTER_REFUSED:
            cluster_coordinator_dead(s->coordinator, i, base_now());
            break;
        default:
            break;
        }
    }
}

/* A number has one view, of whichever coordinator. */
static void check_view(const struct comm_view *view)
{
    struct published *p = published;
    const struct comm_view *other;

    while (p != NULL && p->view.number != view->number)
        p = p->next;
    if (p == NULL) {
        p = base_calloc(1, sizeof *p);
        *p = (struct published){*view, published};
        published = p;
    }
    other = &p->view;
    sim_check(other->size == view->size, "view %u is published with %u and with %u members",
              view->number, other->size, view->size);
    for (uint32_t i = 0; i < view->size; i++)
        sim_check(other->members[i].id == view->members[i].id,
                  "view %u is published with workers %u and %u at rank %u", view->number,
                  other->members[i].id, view->members[i].id, i);
}

void sim_server_step(struct sim_agent *a, double now)
{
    struct sim_server *s = a->server;
    struct cluster_message m;
    json_t *event;
    int link;

    if (now >= s->next_tick) {
        cluster_coordinator_tick(s->coordinator, now);
        s->next_tick = now + TICK;
    }
    seek_hosts(a);
    while (cluster_coordinator_next(s->coordinator, &link, &m)) {
        if (m.type == CLUSTER_VIEW)
            check_view(&m.members);
        if (m.type == CLUSTER_END && link == 0)
            sim_note_end(s->coordinator, &m);
        sim_plug_send(s->links[link], &m);
        cluster_message_fini(&m);
    }
    while ((event = cluster_coordinator_event(s->coordinator)) != NULL)
        json_decref(event);
}
