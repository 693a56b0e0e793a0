/* SPDX-License-Identifier: MIT
 *
 * What the coordinator does for the time after it: the state that every agent keeps, and the rule
 * that a coordinator with too few hosts does not go on, since the others may have a successor.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/coordinator_private.h"

/* Seconds that a coordinator which hears too few hosts waits for the news that others are dead. */
static const double DOUBT = 2.0;

static void fill_hosts(const struct cluster_coordinator *c, struct cluster_state *s)
{
    s->host_count = c->host_count;
    for (int i = 0; i < c->host_count; i++) {
        const struct host *h = &c->hosts[i];
        struct cluster_state_host *to = &s->hosts[i];

        to->here = h->here || h->awaited;
        to->port = h->port;
        to->workers = h->workers;
        snprintf(to->name, sizeof to->name, "%s", h->name);
        snprintf(to->address, sizeof to->address, "%s", h->address);
    }
}

static void fill_state(const struct cluster_coordinator *c, struct cluster_state *s)
{
    const struct cluster_coordinator_setup *setup = &c->setup;

    *s = (struct cluster_state){
        .term = c->term,
        .job = c->job,
        .first_hosts = setup->hosts,
        .of_each = c->of_each,
        .asked = setup->min_workers,
        .least = setup->least,
        .min_workers = c->min_workers,
        .joins = setup->joins,
        .restarts = setup->restarts,
        .folder = setup->awaits_folder,
        .silence = setup->silence,
        .gather = setup->gather,
        .going_on = c->view.number != 0 && c->phase >= RESUMING && c->phase <= STOPPING,
        .stopping = c->phase == STOPPING || c->stop_text[0] != '\0',
        .last_id = c->last_id,
        .leader = (uint32_t)c->own,
        .finished = c->finished,
        .done = c->done,
        .done_view = c->done_view,
        .result_id = c->result_id,
        .result = c->result,
        .settings = c->settings,
        .view = c->view,
    };
    for (uint32_t i = 0; i < c->view.size; i++) /* `done` has those of the view */
        s->finished -= (c->done >> i & 1) != 0 &&
                       cluster_coordinator_find((struct cluster_coordinator *)(uintptr_t)c,
                                                c->view.members[i].id) == NULL;
    if (s->finished < 0)
        s->finished = 0;
    memcpy(s->quorum, c->quorum, sizeof s->quorum);
    snprintf(s->name, sizeof s->name, "%s", c->name);
    snprintf(s->program, sizeof s->program, "%s", c->program);
    snprintf(s->transport, sizeof s->transport, "%s", c->transport != NULL ? c->transport : "");
    fill_hosts(c, s);
}

void cluster_coordinator_replicate(struct cluster_coordinator *c)
{
    struct cluster_message m = {.type = CLUSTER_STATE};
    struct cluster_state *state;
    bool others = false;

    for (int i = 0; i < c->host_count; i++)
        others |= c->hosts[i].here && i != c->own;
    if (!others || c->phase == OVER)
        return;
    state = base_calloc(1, sizeof *state);
    fill_state(c, state);
    m.body = cluster_state_to_json(state);
    base_free(state);
    if (c->state == NULL || !json_equal(c->state, m.body)) {
        json_decref(c->state);
        c->state = json_copy(m.body);
        json_object_set_new(m.body, "serial", json_integer(++c->serial));
        for (int i = 0; i < c->host_count; i++) {
            struct cluster_message copy = {.type = CLUSTER_STATE, .body = json_incref(m.body)};

            if (c->hosts[i].here && i != c->own)
                cluster_coordinator_say(c, c->hosts[i].link, &copy);
            cluster_message_fini(&copy);
        }
    }
    cluster_message_fini(&m);
}

/* ---- the quorum ---- */

static bool in_view(const struct cluster_coordinator *c, int host)
{
    for (uint32_t i = 0; i < c->view.size; i++)
        if (c->view.members[i].host == host)
            return true;
    return false;
}

void cluster_coordinator_settle(struct cluster_coordinator *c)
{
    for (int i = 0; i < c->host_count; i++)
        c->quorum[i] = in_view(c, i);
}

bool cluster_coordinator_has_say(const struct cluster_coordinator *c, int host)
{
    return c->quorum[host] || in_view(c, host);
}

/* True if `counts` accepts at least half of the hosts of the last view in use, and of the newest
 * view. Dead hosts are left out. If not, *heard_p of *of_p hosts were accepted. */
static bool has_half(const struct cluster_coordinator *c,
                     bool counts(const struct cluster_coordinator *c, int host, double now),
                     double now, int *heard_p, int *of_p)
{
    int in_quorum = 0, of_quorum = 0, in_newest = 0, of_newest = 0;
    bool newest_lacks;

    for (int i = 0; i < c->host_count; i++) {
        bool newest = in_view(c, i);

        in_quorum += c->quorum[i] && !c->hosts[i].dead;
        of_quorum += c->quorum[i] && counts(c, i, now);
        in_newest += newest && !c->hosts[i].dead;
        of_newest += newest && counts(c, i, now);
    }
    newest_lacks = 2 * of_newest < in_newest;
    *heard_p = newest_lacks ? of_newest : of_quorum;
    *of_p = newest_lacks ? in_newest : in_quorum;
    return !newest_lacks && 2 * of_quorum >= in_quorum;
}

static bool is_here(const struct cluster_coordinator *c, int host, double now)
{
    (void)now;
    return c->hosts[host].here;
}

static bool is_heard(const struct cluster_coordinator *c, int host, double now)
{
    return c->hosts[host].here && (host == c->own || now - c->hosts[host].heard <= CLUSTER_QUIET);
}

bool cluster_coordinator_may_go_on(struct cluster_coordinator *c, double now)
{
    int heard, of;

    if (has_half(c, is_here, now, &heard, &of)) {
        c->doubtful = 0;
        return true;
    }
    if (c->doubtful <= 0)
        c->doubtful = now;
    if (now - c->doubtful > DOUBT) {
        c->failure = (struct failure){0}; /* no worker is to blame */
        cluster_coordinator_fail(c, BASE_ERR_PEER_LOST, now,
                                 "this host hears %d of %d hosts: the others may go on without it",
                                 heard, of);
    }
    return false;
}

bool cluster_coordinator_may_publish(const struct cluster_coordinator *c, double now)
{
    int heard, of;

    return now - c->woke >= CLUSTER_QUIET && now - c->last_tick < CLUSTER_QUIET &&
           has_half(c, is_heard, now, &heard, &of);
}
