/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/commit.h"

#include <math.h>

#include "train/strategies/ring/holds.h"
#include "train/strategies/ring/rare.h"
#include "train/strategies/ring/replicas.h"
#include "train/strategies/ring/spare.h"

/* ---- a report ---- */

static void ring_report_fill(struct train_session *s, const struct train_step *step)
{
    struct ring_report *r = &ring_of(s)->report;

    r->session = s;
    r->step = s->team.exchange.step;
    r->count = ring_replicas_list(s, r->list);
    r->mine = (struct ring_word){.outcome = step->outcome,
                                 .stop = train_team_stopping(&s->team),
                                 .renew = train_team_outdated(&s->team)};
}

static base_status ring_report_pass(struct ring_report *r)
{
    train_fault_at(&r->session->fault, "replicate", r->step);
    return train_team_pass(&r->session->team, r->list, r->count);
}

static base_status ring_report_gather(struct ring_report *r)
{
    train_fault_at(&r->session->fault, "combine", r->step);
    return train_team_gather(&r->session->team, &r->mine, sizeof r->mine, r->all);
}

static base_status ring_report_run(void *context)
{
    base_status st = ring_report_pass(context);

    return st == BASE_OK ? ring_report_gather(context) : st;
}

static void ring_report_read(struct train_session *s, struct train_outcome *outcome)
{
    const struct ring_word *all = ring_of(s)->report.all;

    s->verdict.stop = s->verdict.renew = false;
    for (int i = 0; i < s->team.exchange.size; i++) {
        s->verdict.stop |= all[i].stop;
        s->verdict.renew |= all[i].renew;
        if (all[i].outcome.seen > 0)
            *outcome = all[i].outcome;
    }
}

base_status ring_agree(struct train_session *s, struct train_step *step)
{
    base_status st = BASE_OK;
    struct ring_report *r = &ring_of(s)->report;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);

    ring_report_fill(s, step);
    TRY(ring_report_pass(r));
    train_clock_enter(&s->clock, TRAIN_WAIT);
    TRY(ring_report_gather(r));
    ring_report_read(s, &step->outcome);
    train_clock_enter(&s->clock, was);
out:
    return st;
}

/* The step counts. A sample counts where its loss is computed. */
static void ring_count(struct train_session *s, const struct train_step *step)
{
    struct ring *ring = ring_of(s);

    ring->counted =
        (struct ring_note){.outcome = step->outcome, .scale = step->update.hyper.gradient_scale};
    ring_replicas_lack(s, &step->update);
    train_step_count(s, &step->outcome, ring_stages_judge(&ring->stages) ? step->batch.count : 0);
    train_step_tell(s, step);
}

void ring_commit(struct train_session *s, const struct train_step *step)
{
    ring_update_own(s, &step->update);
    train_step_advance(s, step);
    ring_count(s, step);
}

/* ---- steps that overlap ---- */

void ring_report(struct train_session *s, const struct train_step *step)
{
    struct ring *ring = ring_of(s);
    struct ring_report *r = &ring->report;

    ring->step = *step;
    ring_report_fill(s, step);
    ring_spare_send(s);
    r->failed = BASE_OK;
    r->under_way = true;
    if (ring->stages.mail.engine != NULL)
        comm_engine_order(ring->stages.mail.engine, ring_report_run, r, &r->task);
}

base_status ring_hear(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring *ring = ring_of(s);
    struct ring_report *r = &ring->report;
    enum train_category was;

    if (!r->under_way)
        return r->failed;
    r->under_way = false;
    was = train_clock_enter(&s->clock, TRAIN_WAIT);
    st = ring->stages.mail.engine != NULL
             ? comm_engine_wait(ring->stages.mail.engine, &r->task, INFINITY)
             : ring_report_run(r); /* alone */
    train_clock_enter(&s->clock, was);
    ring->doubtful = st == BASE_ERR_PEER_LOST;
    TRY(st);
    ring_report_read(s, &ring->step.outcome);
    TRY(train_step_judge(s, &ring->step));
    ring_count(s, &ring->step);
out:
    r->failed = st;
    return st;
}

bool ring_hear_some(void *session)
{
    struct train_session *s = session;
    struct ring_report *r = &ring_of(s)->report;

    if (!r->under_way || !atomic_load_explicit(&r->task.ended, memory_order_acquire))
        return ring_update_some(s);
    base_ignore(ring_hear(s)); /* ring_hear says it again */
    return true;
}

/* ---- the next view ---- */

/* A doubtful step that overlaps is in the weights already. */
static bool ring_is_ahead(const struct ring *ring)
{
    return ring->doubtful && ring->step.ended > 0;
}

/* A step of which this worker had not heard all others. */
static void ring_resolve_step(struct train_session *s, const struct ring_note *newest)
{
    struct ring *ring = ring_of(s);
    bool ahead = ring_is_ahead(ring);
    int64_t step = s->state.position.step + (ahead ? 0 : 1);
    bool counts = newest->known == step;

    ring->step.outcome = newest->outcome;
    ring->step.update.hyper.gradient_scale = newest->scale;
    if (counts && ahead) {
        ring_count(s, &ring->step);
    } else if (counts) {
        ring_commit(s, &ring->step);
    } else if (ahead) {
        ring_spare_restore(s);
    } else {
        s->team.exchange.step = step;
        train_trace_drop(&s->trace);
        s->task->undo(s);
    }
    ring_update_replicas(s);
    if (counts && ahead)
        ring_spare_end(s); /* with the statistics of the replicas */
}

static void ring_resolve(struct train_session *s, const struct ring_note *newest)
{
    struct ring *ring = ring_of(s);

    if (!ring->doubtful)
        return;
    if (!ring->rare)
        ring_resolve_step(s, newest);
    else if (ring->renewing && newest->known == s->state.position.step)
        ring_rare_accept(s);
    else
        ring_spare_restore(s);
    ring->doubtful = ring->renewing = false;
    s->state.claims.count = 0;
    ring_claim(&ring->stages, s, train_state_version(&s->state));
}

static struct ring_note ring_note_of(const struct train_session *s)
{
    const struct ring *ring = ring_of(s);
    struct ring_note note = ring->counted;

    note.known = s->whole ? s->state.position.step - (ring_is_ahead(ring) ? 1 : 0) : -1;
    if (s->whole && ring->doubtful && ring->rare)
        note.known = ring->spare.before.position.step;
    return note;
}

base_status ring_reconcile(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ring_note mine = ring_note_of(s), all[COMM_MAX_WORKERS], *newest = all;
    int64_t from = s->state.position.step;
    bool may_lose = ring_of(s)->rare && ring_of(s)->doubtful;

    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    for (int i = 1; i < s->team.exchange.size; i++)
        if (all[i].known > newest->known)
            newest = &all[i];
    ring_resolve(s, newest);
    if (may_lose)
        ring_rare_lose(s, from);
out:
    return st;
}

void ring_settle(struct train_session *s, struct train_version version)
{
    (void)version; /* after ring_reconcile no step is doubtful; without it, such a step never was */
    ring_resolve(s, &(struct ring_note){.known = -1});
}
