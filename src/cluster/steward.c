/* SPDX-License-Identifier: MIT */
#include "cluster/steward.h"

#include <math.h>
#include <stdio.h>

#include "base/log.h"

/* Seconds. SAVING: workers may take so long to save when the coordinator is gone. STALL: a steward
 * that had no turn for longer was itself asleep. */
static const double SAVING = 30.0, STALL = 1.0;

/* Every worker that is not reaped yet; the body may bury it. */
/* NOLINTBEGIN(bugprone-macro-parentheses): what the macro declares is a plain name */
#define for_each_ward(s, w)                                                             \
    for (typeof(&(s)->wards[0]) w = (s)->wards; w < (s)->wards + COMM_MAX_WORKERS; w++) \
        if (w->id == 0)                                                                 \
            continue;                                                                   \
        else
/* NOLINTEND(bugprone-macro-parentheses) */

static int slot_of(const struct cluster_steward *s, const struct cluster_ward *w)
{
    return (int)(w - s->wards);
}

static uint64_t bit_of(int slot)
{
    return UINT64_C(1) << slot;
}

void cluster_steward_init(struct cluster_steward *s, const struct cluster_hands *hands, void *agent,
                          double silence, double now)
{
    *s = (struct cluster_steward){
        .hands = hands, .agent = agent, .silence = silence, .heard = now, .last_turn = now};
}

static void say(struct cluster_steward *s, const struct cluster_message *m)
{
    s->hands->say(s->agent, m);
}

static void tell_workers(struct cluster_steward *s, const struct cluster_message *m)
{
    for_each_ward(s, w) s->hands->tell(s->agent, slot_of(s, w), m);
}

/* ---- losses ---- */

void cluster_steward_lose(struct cluster_steward *s, int slot, const char *why)
{
    struct cluster_ward *w = &s->wards[slot];
    struct cluster_message m = {.type = CLUSTER_LOST, .peer = w->id, .view = s->view.number};

    if (w->lost || w->done)
        return;
    w->lost = true;
    if ((s->working & bit_of(slot)) != 0)
        s->hands->lost(s->agent, slot);
    s->working &= ~bit_of(slot);
    cluster_message_text(&m, why);
    say(s, &m);
}

void cluster_steward_cut(struct cluster_steward *s, int slot, const char *why, double now)
{
    s->wards[slot].heard = now;
    cluster_steward_lose(s, slot, why);
}

void cluster_steward_bury(struct cluster_steward *s, int slot, const struct cluster_message *exited)
{
    cluster_steward_lose(s, slot, "died");
    say(s, exited);
    s->wards[slot] = (struct cluster_ward){0};
}

void cluster_steward_lose_coordinator(struct cluster_steward *s, const char *why, double now)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = 1};

    s->alone = true;
    s->alone_until = now + SAVING;
    s->code = BASE_ERR_PEER_LOST;
    snprintf(s->words, sizeof s->words, "the coordinator on %s is gone, the job cannot go on: %s",
             s->coordinator, why);
    cluster_message_text(&m, s->words);
    tell_workers(s, &m);
}

/* ---- workers ---- */

/* Shared memory of views in which no worker of this host works any more. */
static void forget_regions(struct cluster_steward *s)
{
    uint32_t oldest = s->view.number;

    for_each_ward(s, w) if (w->view != 0 && w->view < oldest) oldest = w->view;
    s->hands->forget_regions(s->agent, oldest);
}

base_status cluster_steward_hear_worker(struct cluster_steward *s, int slot,
                                        const struct cluster_message *m, double now)
{
    struct cluster_ward *w = &s->wards[slot];

    w->heard = now;
    switch (m->type) {
    case CLUSTER_HEARTBEAT: /* goes on with the agent's next one */
        w->view = m->view;
        w->step = m->load.step;
        forget_regions(s);
        return BASE_OK;
    case CLUSTER_REGION:
        s->hands->give_region(s->agent, slot, m);
        return BASE_OK;
    case CLUSTER_RESULT:
        w->done = true;
        s->working &= ~bit_of(slot);
        s->hands->watch(s->agent, &s->view, s->working);
        break;
    case CLUSTER_FAILED:
        if (s->alone) /* there is no coordinator that would tell of it */
            base_relay("worker %u: %s", w->id, m->text);
        break;
    case CLUSTER_READY:
    case CLUSTER_SUSPECT:
    case CLUSTER_FOLDER:
        break;
    default:
        return base_fail(BASE_ERR_DATA, "a worker does not say '%s'", cluster_type_name(m->type));
    }
    if (m->id != w->id)
        return base_fail(BASE_ERR_DATA, "worker %u speaks for worker %u", w->id, m->id);
    say(s, m);
    return BASE_OK;
}

/* ---- the coordinator ---- */

static base_status start_worker(struct cluster_steward *s, uint32_t id, const json_t *order)
{
    base_status st = BASE_OK;
    int slot = 0;

    while (slot < COMM_MAX_WORKERS && s->wards[slot].id != 0)
        slot++;
    if (slot == COMM_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_DATA, "more than %d workers on a host", COMM_MAX_WORKERS));
    TRY(s->hands->start(s->agent, slot, id, order));
    /* Until it has spoken the coordinator waits for it, --gather seconds. */
    s->wards[slot] = (struct cluster_ward){.id = id, .heard = INFINITY, .step = -1};
out:
    return st;
}

/* As if it had died at once; the coordinator decides what that means. */
static void say_not_started(struct cluster_steward *s, uint32_t id)
{
    struct cluster_message m = {.type = CLUSTER_EXITED, .id = id, .code = 1};

    cluster_message_text(&m, base_message());
    say(s, &m);
}

static base_status hear_job(struct cluster_steward *s, const struct cluster_message *m)
{
    base_status st = BASE_OK;

    if (m->body == NULL || (s->ordered && m->host != s->host))
        TRY(base_fail(BASE_ERR_DATA, "the coordinator sent no job, or another host's"));
    s->ordered = true;
    s->host = m->host;
    TRY(base_json_real(m->body, "silence", &s->silence));
    for (int i = 0; i < m->workers; i++)
        if (start_worker(s, m->id + (uint32_t)i, m->body) != BASE_OK)
            say_not_started(s, m->id + (uint32_t)i);
out:
    return st;
}

static void hear_view(struct cluster_steward *s, const struct cluster_message *m)
{
    s->view = m->members;
    s->working = 0;
    for_each_ward(s, w) if (!w->lost && !w->done && comm_view_rank(&s->view, w->id) >= 0)
        s->working |= bit_of(slot_of(s, w));
    s->hands->watch(s->agent, &s->view, s->working);
    tell_workers(s, m);
}

static void hear_end(struct cluster_steward *s, const struct cluster_message *m)
{
    s->ended = true;
    s->blamed = m->id;
    s->code = m->code <= BASE_ERR_INTERNAL ? (base_code)m->code : BASE_ERR_INTERNAL;
    snprintf(s->words, sizeof s->words, "%s", m->text);
}

base_status cluster_steward_hear_coordinator(struct cluster_steward *s,
                                             const struct cluster_message *m, double now)
{
    s->heard = now;
    switch (m->type) {
    case CLUSTER_HEARTBEAT:
        return BASE_OK;
    case CLUSTER_JOB:
        return hear_job(s, m);
    case CLUSTER_VIEW:
        hear_view(s, m);
        return BASE_OK;
    case CLUSTER_LOST:
        s->hands->alarm(s->agent, m->view, m->peer);
        tell_workers(s, m);
        return BASE_OK;
    case CLUSTER_KILL:
        for_each_ward(s, w) if (w->id == m->id) s->hands->kill(s->agent, slot_of(s, w));
        return BASE_OK;
    case CLUSTER_STOP:
        if (m->code == 0 || m->code == BASE_ERR_PEER_LOST) /* END tells of other failures */
            base_info("%s: %s", m->code == 0 ? "stopping" : "the job has failed", m->text);
        tell_workers(s, m);
        return BASE_OK;
    case CLUSTER_END:
        hear_end(s, m);
        return BASE_OK;
    default:
        return base_fail(BASE_ERR_DATA, "a coordinator does not say '%s'",
                         cluster_type_name(m->type));
    }
}

/* ---- time ---- */

void cluster_steward_wake(struct cluster_steward *s, double now)
{
    double asleep = now - s->last_turn - STALL;

    s->last_turn = now;
    if (asleep <= 0)
        return;
    s->heard += asleep;
    for_each_ward(s, w) w->heard += asleep;
}

static void end_silent(struct cluster_steward *s, double now)
{
    char why[64];

    for_each_ward(s, w)
    {
        if (now - w->heard <= s->silence)
            continue;
        snprintf(why, sizeof why, "was silent for %.1f s", now - w->heard);
        cluster_steward_lose(s, slot_of(s, w), why);
        s->hands->kill(s->agent, slot_of(s, w));
    }
}

static void send_heartbeats(struct cluster_steward *s, double now)
{
    struct cluster_message m = {.type = CLUSTER_HEARTBEAT};

    if (now < s->next_beat)
        return;
    s->next_beat = now + cluster_heartbeat_interval(s->silence);
    for_each_ward(s, w)
    {
        m.id = w->id;
        m.view = w->view;
        m.load = (struct cluster_load){.step = w->step};
        if (s->hands->measure(s->agent, slot_of(s, w), now, &m.load))
            say(s, &m);
    }
    m.id = 0;
    m.view = s->view.number;
    m.load = (struct cluster_load){.step = -1};
    (void)s->hands->measure(s->agent, -1, now, &m.load);
    say(s, &m);
}

void cluster_steward_tick(struct cluster_steward *s, double now)
{
    end_silent(s, now);
    send_heartbeats(s, now);
    if (!s->alone && s->ordered && now - s->heard > s->silence)
        cluster_steward_lose_coordinator(s, "it is silent", now);
}

bool cluster_steward_over(const struct cluster_steward *s, double now)
{
    if (s->ended || (s->alone && now > s->alone_until))
        return true;
    for_each_ward(s, w) return false;
    return s->alone;
}
