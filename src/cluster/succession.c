/* SPDX-License-Identifier: MIT */
#include "cluster/succession.h"

#include <stdio.h>

#include "base/mem.h"

/* Seconds. STAGGER: a host waits so long for each lower one before it asks itself. REPEAT: after so
 * long a host repeats an ask that was refused or not answered. ROUND: after so long without a
 * majority it asks in a higher term. HOLD: so long after its vote a host votes for no other
 * candidate. PATIENCE: how long a host looks, beyond `silence`, which the other hosts may need to
 * find out that the coordinator is lost. */
static const double STAGGER = 0.4, REPEAT = 0.1, ROUND = 1.0, HOLD = 1.0, PATIENCE = 3.0;

struct cluster_letter {
    uint32_t host;
    bool answer;
    struct cluster_message message;
    struct cluster_letter *next;
};

void cluster_succession_init(struct cluster_succession *s)
{
    *s = (struct cluster_succession){0};
}

void cluster_succession_fini(struct cluster_succession *s)
{
    struct cluster_message m;
    uint32_t host;
    bool answer;

    while (cluster_succession_next(s, &host, &answer, &m))
        cluster_message_fini(&m);
    cluster_state_fini(&s->state);
}

static void send(struct cluster_succession *s, uint32_t host, bool answer,
                 struct cluster_message *m)
{
    struct cluster_letter *letter = base_calloc(1, sizeof *letter);

    *letter = (struct cluster_letter){.host = host, .answer = answer, .message = *m};
    if (s->last != NULL)
        s->last->next = letter;
    else
        s->first = letter;
    s->last = letter;
}

bool cluster_succession_next(struct cluster_succession *s, uint32_t *host_p, bool *answer_p,
                             struct cluster_message *message_p)
{
    struct cluster_letter *letter = s->first;

    if (letter == NULL)
        return false;
    *host_p = letter->host;
    *answer_p = letter->answer;
    *message_p = letter->message;
    s->first = letter->next;
    if (s->first == NULL)
        s->last = NULL;
    base_free(letter);
    return true;
}

/* ---- the state ---- */

/* Takes over a newer state. */
static base_status take_state(struct cluster_succession *s, const json_t *body)
{
    base_status st = BASE_OK;
    struct cluster_state *state = base_calloc(1, sizeof *state);

    TRY(cluster_state_from_json(body, state));
    if (s->state.name[0] == '\0' || cluster_state_newer(state, s->state.term, s->state.serial)) {
        cluster_state_fini(&s->state);
        s->state = *state;
        *state = (struct cluster_state){0};
    }
out:
    cluster_state_fini(state);
    base_free(state);
    return st;
}

base_status cluster_succession_learn(struct cluster_succession *s, uint32_t self,
                                     const json_t *body)
{
    base_status st = BASE_OK;

    s->self = self;
    TRY(take_state(s, body));
    if (s->state.term >= s->term) {
        s->term = s->state.term;
        s->leader = s->state.leader;
    }
out:
    return st;
}

/* ---- majorities ---- */

static bool counts(const struct cluster_succession *s, uint32_t host)
{
    return (s->state.quorum[host] || cluster_state_in_view(&s->state, host)) &&
           !s->hosts[host].dead;
}

/* True if more than half of the hosts that are not dead have voted for this one: both of the newest
 * view and of the last one that is known to have been in use. Where the two differ, other hosts may
 * know only one of them. */
static bool has_majority(const struct cluster_succession *s)
{
    int in_view = 0, view_votes = 0, in_quorum = 0, quorum_votes = 0;

    for (uint32_t i = 0; i < (uint32_t)s->state.host_count; i++) {
        bool view = cluster_state_in_view(&s->state, i), quorum = s->state.quorum[i];

        if (s->hosts[i].dead)
            continue;
        in_view += view;
        in_quorum += quorum;
        view_votes += view && s->hosts[i].granted;
        quorum_votes += quorum && s->hosts[i].granted;
    }
    return 2 * view_votes > in_view && 2 * quorum_votes > in_quorum;
}

/* The number of lower hosts of the view that may still ask. */
static int lower_hosts(const struct cluster_succession *s)
{
    int lower = 0;

    for (uint32_t i = 0; i < s->self && i < (uint32_t)s->state.host_count; i++)
        lower += i != s->state.leader && counts(s, i);
    return lower;
}

static void give_up(struct cluster_succession *s, const char *why)
{
    s->stage = CLUSTER_GIVEN_UP;
    s->asking = false;
    snprintf(s->why, sizeof s->why, "%s", why);
}

/* ---- asking ---- */

static void ask(struct cluster_succession *s, uint32_t host)
{
    struct cluster_message m = {.type = CLUSTER_ASK,
                                .host = s->self,
                                .term = s->term,
                                .state_term = s->state.term,
                                .serial = s->state.serial};

    send(s, host, false, &m);
}

static void consider(struct cluster_succession *s)
{
    if (s->stage != CLUSTER_LOOKING || !s->asking || !has_majority(s))
        return;
    s->stage = CLUSTER_LEADING;
    s->asking = false;
    s->leader = s->self;
}

static void ask_all(struct cluster_succession *s, double now)
{
    s->ask_at = now + REPEAT;
    for (uint32_t i = 0; i < (uint32_t)s->state.host_count; i++)
        if (i != s->self && counts(s, i) && s->hosts[i].open && !s->hosts[i].granted)
            ask(s, i);
    consider(s);
}

static void begin_round(struct cluster_succession *s, double now)
{
    if (s->term >= CLUSTER_MAX_TERM) {
        give_up(s, "there were too many successions");
        return;
    }
    s->term++;
    s->asking = true;
    s->round_at = now;
    s->voted_term = s->term;
    s->voted_for = s->self;
    s->voted_at = now;
    for (int i = 0; i < CLUSTER_MAX_HOSTS; i++)
        s->hosts[i].granted = i == (int)s->self;
    ask_all(s, now);
}

void cluster_succession_begin(struct cluster_succession *s, double now)
{
    if (s->stage != CLUSTER_FOLLOWING)
        return;
    s->stage = CLUSTER_LOOKING;
    s->asking = false;
    s->since = now;
    s->ask_at = now;
    for (int i = 0; i < CLUSTER_MAX_HOSTS; i++)
        s->hosts[i].dead = s->hosts[i].granted = false;
    if (!s->state.going_on)
        give_up(s, "it had not yet begun, or was ending");
    else
        cluster_succession_tick(s, now);
}

bool cluster_succession_wants(const struct cluster_succession *s, uint32_t host)
{
    if (s->stage != CLUSTER_LOOKING || host == s->self || host >= (uint32_t)s->state.host_count ||
        s->hosts[host].open || !counts(s, host) || s->state.hosts[host].port == 0)
        return false;
    return s->asking || host < s->self; /* this host asks earlier if lower hosts are dead */
}

void cluster_succession_opened(struct cluster_succession *s, uint32_t host, double now)
{
    (void)now;
    s->hosts[host].open = true;
    if (s->asking && counts(s, host) && !s->hosts[host].granted)
        ask(s, host);
}

void cluster_succession_closed(struct cluster_succession *s, uint32_t host)
{
    s->hosts[host].open = false;
}

void cluster_succession_dead(struct cluster_succession *s, uint32_t host, double now)
{
    s->hosts[host].dead = !s->stale;
    s->hosts[host].open = false;
    consider(s);
    cluster_succession_tick(s, now);
}

/* ---- hearing ---- */

static void vote(struct cluster_succession *s, uint32_t host, bool agreed,
                 const struct cluster_message *asked)
{
    struct cluster_message m = {
        .type = CLUSTER_VOTE, .host = s->self, .term = s->term, .code = agreed ? 0 : 1};

    if (agreed && cluster_state_newer(&s->state, asked->state_term, asked->serial))
        m.body = cluster_state_to_json(&s->state);
    send(s, host, true, &m);
}

/* A host has one vote a term. A lower term is over. A higher one must wait while another candidate,
 * for which this host has just voted, may be about to lead. */
static bool agrees(const struct cluster_succession *s, const struct cluster_message *m, double now)
{
    bool again = s->voted_term == m->term && s->voted_for == m->host;
    bool held = s->voted_term != 0 && s->voted_for != s->self && s->voted_for != m->host &&
                now - s->voted_at < HOLD;

    return s->stage == CLUSTER_LOOKING && (again || (m->term > s->term && !held));
}

static void hear_ask(struct cluster_succession *s, uint32_t host, const struct cluster_message *m,
                     double now)
{
    bool agreed = agrees(s, m, now);

    if (agreed) {
        s->term = s->voted_term = m->term;
        s->voted_for = host;
        s->voted_at = now;
        s->asking = false;
        s->ask_at = now + HOLD + STAGGER * lower_hosts(s);
    }
    vote(s, host, agreed, m);
}

static base_status hear_vote(struct cluster_succession *s, uint32_t host,
                             const struct cluster_message *m)
{
    base_status st = BASE_OK;

    if (s->stage != CLUSTER_LOOKING)
        return BASE_OK;
    if (m->code == 0 && s->asking && m->term == s->term) {
        if (m->body != NULL)
            TRY(take_state(s, m->body));
        s->hosts[host].granted = true;
    } else if (m->term > s->term) { /* the next round uses a higher one */
        s->term = m->term;
        s->asking = false;
    }
    consider(s);
out:
    return st;
}

static void hear_lead(struct cluster_succession *s, uint32_t host, const struct cluster_message *m)
{
    struct cluster_message no = {.type = CLUSTER_VOTE, .host = s->self, .term = s->term, .code = 1};

    if (m->term < s->term || (m->term == s->term && s->stage != CLUSTER_LOOKING) ||
        s->stage == CLUSTER_GIVEN_UP || s->stage == CLUSTER_LEADING) {
        send(s, host, true, &no);
        return;
    }
    s->stage = CLUSTER_FOLLOWING;
    s->asking = false;
    s->term = m->term;
    s->leader = host;
}

base_status cluster_succession_hear(struct cluster_succession *s, uint32_t host,
                                    const struct cluster_message *m, double now)
{
    if (host >= CLUSTER_MAX_HOSTS || host == s->self || m->host != host)
        return base_fail(BASE_ERR_DATA, "host %u speaks as host %u", host, m->host);
    if (m->type == CLUSTER_ASK)
        hear_ask(s, host, m, now);
    else if (m->type == CLUSTER_LEAD)
        hear_lead(s, host, m);
    else if (m->type == CLUSTER_VOTE)
        return hear_vote(s, host, m);
    else
        return base_fail(BASE_ERR_DATA, "an agent does not say '%s' to another one",
                         cluster_type_name(m->type));
    return BASE_OK;
}

void cluster_succession_tick(struct cluster_succession *s, double now)
{
    if (s->stage != CLUSTER_LOOKING)
        return;
    if (now - s->since > s->state.silence + PATIENCE) {
        give_up(s, "more than half of the hosts are needed to go on without it");
        return;
    }
    /* A host that is not in the view may not lead: it waits for another host that does. */
    if (!cluster_state_in_view(&s->state, s->self))
        return;
    if (s->asking && now - s->round_at > ROUND) {
        s->asking = false;
        s->ask_at = now + STAGGER * lower_hosts(s);
    }
    if (s->asking && now >= s->ask_at)
        ask_all(s, now);
    else if (!s->asking && now >= s->ask_at && now - s->since >= STAGGER * lower_hosts(s))
        begin_round(s, now);
}
