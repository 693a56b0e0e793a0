/* SPDX-License-Identifier: MIT */
#include "cluster/steward.h"

#include <math.h>
#include <stdio.h>

#include "base/log.h"

/* Seconds. SAVING: how long workers may take to save when the coordinator is gone. STALL: a steward
 * that had no turn for longer was itself asleep. */
static const double SAVING = 30.0, STALL = 1.0;

/* Seconds: if a host has heard nothing for so long, the coordinator may have given it up. */
static const double GIVEN_UP_AFTER = 1.25;

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
    *s = (struct cluster_steward){.hands = hands,
                                  .agent = agent,
                                  .silence = silence,
                                  .heard = now,
                                  .last_turn = now,
                                  .truly_heard = now,
                                  .woke = now - GIVEN_UP_AFTER};
}

void cluster_steward_fini(struct cluster_steward *s)
{
    cluster_succession_fini(&s->succession);
    cluster_report_fini(&s->given);
    cluster_settings_fini(&s->settings);
}

bool cluster_steward_looks(const struct cluster_steward *s)
{
    return s->succession.stage == CLUSTER_LOOKING;
}

/* Says nothing while there is no coordinator: the next one gets a report. */
static void say(struct cluster_steward *s, const struct cluster_message *m)
{
    if (!cluster_steward_looks(s))
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
    struct cluster_ward *w = &s->wards[slot];
    struct cluster_report *given = &s->given;

    cluster_steward_lose(s, slot, "died");
    say(s, exited);
    if (w->done && given->count < COMM_MAX_WORKERS)
        given->workers[given->count++] =
            (struct cluster_reported){.id = w->id, .view = w->view, .done = true};
    *w = (struct cluster_ward){0};
}

/* ---- without a coordinator ---- */

static void end_alone(struct cluster_steward *s, double now)
{
    struct cluster_message m = {.type = CLUSTER_STOP, .code = 1};
    const char *why = s->succession.why;

    s->alone = true;
    s->alone_until = now + SAVING;
    s->code = BASE_ERR_PEER_LOST;
    snprintf(s->words, sizeof s->words,
             "the coordinator on %s is gone, the job cannot go on%s%s: %s", s->coordinator,
             why[0] != '\0' ? ", " : "", why, s->lost_why);
    cluster_message_text(&m, s->words);
    tell_workers(s, &m);
}

static struct cluster_message settings_message(const struct cluster_steward *s)
{
    return (struct cluster_message){.type = CLUSTER_SETTINGS,
                                    .serial = s->settings.number,
                                    .body = json_incref(s->settings.values)};
}

/* Tells the new coordinator what it has to know of this host. */
static void say_report(struct cluster_steward *s)
{
    struct cluster_report r = s->given;
    struct cluster_message m = {
        .type = CLUSTER_REPORT, .host = s->host, .term = s->succession.term};

    for_each_ward(s, w) r.workers[r.count++] =
        (struct cluster_reported){.id = w->id,
                                  .view = w->view,
                                  .pid = w->pid,
                                  .slot = (uint16_t)slot_of(s, w),
                                  .port = w->port,
                                  .live = true,
                                  .ready = w->ready,
                                  .done = w->done,
                                  .lost = w->lost};
    m.body = cluster_report_to_json(&r);
    say(s, &m);
    cluster_message_fini(&m);
    if (s->folder.id != 0)
        say(s, &s->folder);
    if (s->settings.number != 0) { /* the lost coordinator may have told this host alone */
        m = settings_message(s);
        say(s, &m);
        cluster_message_fini(&m);
    }
}

/* Sends what the succession has to say, and does what it has decided. */
static void pursue(struct cluster_steward *s, enum cluster_stage before, double now)
{
    struct cluster_succession *u = &s->succession;
    struct cluster_message m;
    uint32_t host;
    bool answer;

    while (cluster_succession_next(u, &host, &answer, &m)) {
        s->hands->send(s->agent, host, answer, &m);
        cluster_message_fini(&m);
    }
    if (before == u->stage)
        return;
    if (u->stage == CLUSTER_GIVEN_UP) {
        end_alone(s, now);
    } else if (u->stage == CLUSTER_LEADING || u->stage == CLUSTER_FOLLOWING) {
        s->heard = s->truly_heard = now;
        if (s->hands->follow(s->agent, u->leader, now) == BASE_OK) {
            say_report(s);
        } else {
            u->stage = CLUSTER_GIVEN_UP;
            snprintf(u->why, sizeof u->why, "%.250s", base_message());
            end_alone(s, now);
        }
    }
}

void cluster_steward_lose_coordinator(struct cluster_steward *s, const char *why, double now)
{
    enum cluster_stage before = s->succession.stage;

    if (s->alone || cluster_steward_looks(s))
        return;
    snprintf(s->lost_why, sizeof s->lost_why, "%.255s", why);
    s->hands->drop(s->agent);
    if (!s->succeeds || s->failing || before != CLUSTER_FOLLOWING) {
        end_alone(s, now);
        return;
    }
    base_warn("the coordinator on %s is lost: %s", s->coordinator, why);
    s->succession.stale = now - s->truly_heard > GIVEN_UP_AFTER || now - s->woke < GIVEN_UP_AFTER;
    cluster_succession_begin(&s->succession, now);
    pursue(s, before, now);
}

base_status cluster_steward_hear_agent(struct cluster_steward *s, uint32_t host,
                                       const struct cluster_message *m, double now)
{
    enum cluster_stage before = s->succession.stage;
    uint32_t term = s->succession.term;
    base_status st = cluster_succession_hear(&s->succession, host, m, now);

    /* Another host leads this one away from a coordinator that it still hears. */
    if (before == CLUSTER_FOLLOWING && m->type == CLUSTER_LEAD && s->succession.term > term)
        before = CLUSTER_LOOKING;
    pursue(s, before, now);
    return st;
}

void cluster_steward_opened(struct cluster_steward *s, uint32_t host, double now)
{
    cluster_succession_opened(&s->succession, host, now);
    pursue(s, s->succession.stage, now);
}

void cluster_steward_closed(struct cluster_steward *s, uint32_t host)
{
    cluster_succession_closed(&s->succession, host);
}

void cluster_steward_dead(struct cluster_steward *s, uint32_t host, double now)
{
    enum cluster_stage before = s->succession.stage;

    cluster_succession_dead(&s->succession, host, now);
    pursue(s, before, now);
}

/* ---- workers ---- */

/* Frees shared memory of views in which no worker of this host works any more. */
static void forget_regions(struct cluster_steward *s)
{
    uint32_t oldest = s->view.number;

    for_each_ward(s, w) if (w->view != 0 && w->view < oldest) oldest = w->view;
    s->hands->forget_regions(s->agent, oldest);
}

/* Keeps the result of the worker with the lowest id, for a coordinator that comes later. */
static void keep_result(struct cluster_steward *s, const struct cluster_message *m)
{
    if (s->given.result_id != 0 && s->given.result_id < m->id)
        return;
    json_decref(s->given.result);
    s->given.result = json_incref(m->body);
    s->given.result_id = m->id;
}

base_status cluster_steward_hear_worker(struct cluster_steward *s, int slot,
                                        const struct cluster_message *m, double now)
{
    struct cluster_ward *w = &s->wards[slot];

    w->heard = now;
    switch (m->type) {
    case CLUSTER_HEARTBEAT: /* the agent's next heartbeat passes it on */
        w->view = m->view;
        w->step = m->load.step;
        w->roles = m->roles;
        forget_regions(s);
        return BASE_OK;
    case CLUSTER_REGION:
        s->hands->give_region(s->agent, slot, m);
        return BASE_OK;
    case CLUSTER_RESULT:
        w->done = true;
        w->view = m->view;
        keep_result(s, m);
        s->working &= ~bit_of(slot);
        s->hands->watch(s->agent, &s->view, s->working);
        break;
    case CLUSTER_FAILED:
        if (s->alone) /* there is no coordinator to report it */
            base_relay("worker %u: %s", w->id, m->text);
        break;
    case CLUSTER_READY:
        w->ready = true;
        w->port = m->port;
        w->pid = m->pid;
        break;
    case CLUSTER_FOLDER:
        s->folder = *m;
        break;
    case CLUSTER_SUSPECT:
    case CLUSTER_ACCUSE:
    case CLUSTER_APPLIED:
    case CLUSTER_FIGURES:
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
    /* Until the worker has said `ready`, the coordinator waits for it, --gather seconds. */
    s->wards[slot] = (struct cluster_ward){.id = id, .heard = INFINITY, .step = -1};
    if (s->settings.number != 0) {
        struct cluster_message m = settings_message(s);

        s->hands->tell(s->agent, slot, &m);
        cluster_message_fini(&m);
    }
out:
    return st;
}

/* Reports it as if the worker had died at once; the coordinator decides what that means. */
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

base_status cluster_steward_hear_coordinator(struct cluster_steward *s,
                                             const struct cluster_message *m, double now)
{
    s->heard = s->truly_heard = now;
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
        if (m->code == 0 || m->code == BASE_ERR_PEER_LOST) /* other failures are told with END */
            base_info("%s: %s", m->code == 0 ? "stopping" : "the job has failed", m->text);
        s->failing |= m->code != 0;
        tell_workers(s, m);
        return BASE_OK;
    case CLUSTER_END:
        s->ended = true;
        s->blamed = m->id;
        s->code = m->code <= BASE_ERR_INTERNAL ? (base_code)m->code : BASE_ERR_INTERNAL;
        snprintf(s->words, sizeof s->words, "%s", m->text);
        return BASE_OK;
    case CLUSTER_SETTINGS:
        if (cluster_settings_take(&s->settings, m->serial, m->body))
            tell_workers(s, m);
        return BASE_OK;
    case CLUSTER_STATE:
        return cluster_succession_learn(&s->succession, s->host, m->body);
    case CLUSTER_VOTE: /* it came late */
    case CLUSTER_LEAD: /* this host follows it already */
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
    s->woke = now;
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
        m.roles = w->roles;
        m.load = (struct cluster_load){.step = w->step};
        if (s->hands->measure(s->agent, slot_of(s, w), now, &m.load))
            say(s, &m);
    }
    m.id = m.roles = 0;
    m.view = s->view.number;
    m.load = (struct cluster_load){.step = -1};
    (void)s->hands->measure(s->agent, -1, now, &m.load);
    say(s, &m);
}

void cluster_steward_tick(struct cluster_steward *s, double now)
{
    enum cluster_stage before;

    end_silent(s, now);
    send_heartbeats(s, now);
    if (!s->alone && s->ordered && now - s->heard > s->silence)
        cluster_steward_lose_coordinator(s, "it is silent", now);
    before = s->succession.stage;
    cluster_succession_tick(&s->succession, now);
    pursue(s, before, now);
}

bool cluster_steward_over(const struct cluster_steward *s, double now)
{
    if (s->ended || (s->alone && now > s->alone_until))
        return true;
    for_each_ward(s, w) return false;
    return s->alone;
}
