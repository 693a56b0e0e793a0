/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of a session: when all workers are there, and when one is left alone.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/carry.h"
#include "train/session.h"

/* Seconds for a lost rank 0 to be gone; after 30 this worker's agent ends this worker, too. */
static const double RANK_0_ENDS = 20;

static base_status check_finite(const struct train_session *s, bool finite)
{
    if (finite)
        return BASE_OK;
    return base_fail(BASE_ERR_DIVERGED,
                     "the weights are no longer finite after step %" PRId64
                     "; try a lower --lr or --clip 1",
                     s->state.position.step);
}

static base_status write_checkpoint(struct train_session *s, const struct model_carrier *carrier)
{
    base_status st = BASE_OK;
    double began = base_now();
    struct store_save *save = NULL;
    json_t *about = NULL;

    TRY(check_finite(s, train_state_finite(&s->state)));
    about = train_session_about(s);
    if (s->about_waits) { /* a run.json that knows of more data than its checkpoint is no harm */
        json_object_set(s->run.json, "about", about);
        TRY(train_run_save(&s->run, "running"));
        s->about_waits = false;
    }
    train_journal_flush(&s->journal); /* no checkpoint has a step that events.jsonl lacks */
    TRY(store_save_begin(s->run.checkpoints, (uint64_t)s->state.position.step, &save));
    if (s->wrote_step >= 0)
        store_save_after(save, (uint64_t)s->wrote_step);
    TRY(s->task->write != NULL ? s->task->write(s, carrier, save)
                               : train_state_write(&s->state, carrier, save));
    st = train_state_commit(&s->state, save, about, (unsigned)s->job->keep);
    save = NULL;
    TRY(st);
    s->wrote_step = s->state.position.step;
    train_journal_checkpoint(&s->journal, s->state.position.step, base_now() - began);
out:
    store_save_abandon(save);
    json_decref(about);
    return st;
}

/* Every worker brings what rank 0 lacks. */
static base_status write_parts(struct train_session *s)
{
    base_status st = BASE_OK;
    struct train_carry carry = {0};
    struct train_holds *places = NULL;
    bool finite, all[COMM_MAX_WORKERS];

    finite = train_state_finite(&s->state);
    TRY(train_team_gather(&s->team, &finite, sizeof finite, all));
    for (int i = 0; i < s->team.exchange.size; i++)
        TRY(check_finite(s, all[i]));
    places = train_session_places(s);
    TRY(train_carry_begin(&carry, &s->team, &s->state, places, 0));
    if (train_team_leads(&s->team))
        TRY(write_checkpoint(s, train_carry_leader(&carry)));
    else
        TRY(train_carry_serve_save(&carry));
out:
    train_carry_end(&carry);
    base_free(places);
    return st;
}

static base_status write_together(struct train_session *s)
{
    base_status st = BASE_OK;

    if (s->strategy->saving != NULL)
        TRY(s->strategy->saving(s));
    if (s->strategy->place != NULL && s->team.exchange.size > 1)
        TRY(write_parts(s));
    else if (train_team_leads(&s->team)) /* which has everything */
        TRY(write_checkpoint(s, NULL));
out:
    if (s->strategy->saved != NULL)
        s->strategy->saved(s);
    return st;
}

base_status train_session_unite(struct train_session *s)
{
    base_status st = BASE_OK;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);

    if (s->team.exchange.size > 1 && s->united_step != s->state.position.step)
        TRY(s->strategy->unite != NULL ? s->strategy->unite(s) : s->task->unite(s));
    s->united_step = s->state.position.step;
out:
    train_clock_enter(&s->clock, was);
    return st;
}

bool train_session_save_is_due(const struct train_session *s)
{
    int64_t every = s->plan.save_every;

    return every > 0 ? s->state.position.step % every == 0 : s->state.position.cursor == 0;
}

base_status train_session_save(struct train_session *s)
{
    base_status st = BASE_OK;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);

    if (!s->job->checkpoint || s->saved_step == s->state.position.step || s->state.ahead > 0)
        goto out;
    TRY(train_session_unite(s));
    train_fault_at(&s->fault, "checkpoint", s->state.position.step);
    TRY(write_together(s));
    train_fault_at(&s->fault, "saved", s->state.position.step);
    s->saved_step = s->saved_samples_step = s->state.position.step;
    s->saved_samples = s->samples - s->lost_samples;
out:
    train_clock_enter(&s->clock, was);
    return st;
}

base_status train_session_mark_best(struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    if (!s->job->checkpoint || s->count[DATA_VALIDATION] == 0 || p->best_validation < 0 ||
        p->best_step != p->step || !train_team_leads(&s->team))
        return BASE_OK;
    return store_mark_best(s->run.checkpoints, (uint64_t)p->step);
}

base_status train_session_save_failed(struct train_session *s, base_status st)
{
    char *words = base_strdup(base_message());

    if (train_session_save(s) != BASE_OK)
        base_warn("step %" PRId64 " is not saved: %s", s->state.position.step, base_message());
    st = base_fail(st, "%s (repair it; 'paceline data check %s' lists all such files)", words,
                   s->job->data);
    base_free(words);
    return st;
}

/* The others have gone on without this worker: the run is done, or has a later checkpoint. */
static bool is_left_behind(const struct train_session *s)
{
    struct train_run now = {0};
    struct store_checkpoint newest = {0};
    bool done = train_run_open(s->job->runs_dir, s->run.path, &now) == BASE_OK &&
                strcmp(train_run_status(&now), "done") == 0;
    bool later = store_has_checkpoint(s->run.checkpoints) &&
                 store_checkpoint_open(s->run.checkpoints, false, &newest) == BASE_OK &&
                 newest.step > (uint64_t)s->state.position.step;

    train_run_close(&now);
    store_checkpoint_close(&newest);
    return done || later;
}

/* The others had the rest of the state. One of the workers that are left says from where the run
 * goes on, unless the others have ended it: then run.json has their words. */
static void tell_newest(struct train_session *s)
{
    struct store_checkpoint newest = {0};

    if ((!s->run.locked && train_run_lock(&s->run, 0) != BASE_OK) || is_left_behind(s))
        return;
    s->run_started = true;
    if (store_has_checkpoint(s->run.checkpoints) &&
        store_checkpoint_open(s->run.checkpoints, false, &newest) == BASE_OK)
        base_warn("step %" PRId64 " is not saved: no worker has all of it; go on from step %" PRIu64
                  " with: paceline train --resume %s",
                  s->state.position.step, newest.step, s->run.name);
    else
        base_warn("step %" PRId64 " is not saved: no worker has all of it, and there is no "
                  "checkpoint before it",
                  s->state.position.step);
    store_checkpoint_close(&newest);
}

/* The group is void. The first of the workers that are left to get the folder saves what it has.
 * The lost rank 0 may still be at its end, and whether it has saved what was due only the folder
 * knows. */
base_status train_session_save_alone(struct train_session *s)
{
    base_status st = BASE_OK;
    char *words = base_strdup(base_message());
    int64_t step;
    bool due, there = false;

    if (!s->whole || !s->job->checkpoint || s->run.path == NULL)
        goto out;
    train_session_leave(s);          /* the strategy's extras are what they are between views */
    if (s->strategy->settle != NULL) /* no view will decide about a step that waits for one */
        s->strategy->settle(s, (struct train_version){-1, -1});
    step = s->state.position.step;
    due = s->saved_step == step;
    if (!train_state_is_whole(&s->state) || s->state.claims.count > 0 || s->state.ahead > 0) {
        tell_newest(s);
        goto out;
    }
    if (!s->run.locked && train_run_lock(&s->run, RANK_0_ENDS) != BASE_OK) {
        base_warn("step %" PRId64 " is not saved: %s", step, base_message());
        goto out;
    }
    if (is_left_behind(s))
        goto out;
    there = store_checkpoint_is_there(s->run.checkpoints, (uint64_t)step);
    if (there && !due) /* another survivor was here */
        goto out;
    s->run_started = true; /* this worker writes how the job ended */
    if (!there)
        TRY(write_checkpoint(s, NULL));
    base_warn("saved after step %" PRId64 "; go on with: paceline train --resume %s", step,
              s->run.name);
out:
    if (st == BASE_OK)
        st = base_fail(BASE_ERR_PEER_LOST, "%s", words);
    base_free(words);
    return st;
}
