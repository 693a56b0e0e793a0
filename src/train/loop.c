/* SPDX-License-Identifier: MIT
 *
 * The training loop: enter a view, go from meeting to meeting in it. A meeting is a step after
 * which all workers have the same model; the way there is the strategy's leg. At a meeting the
 * model is scored, judged, saved and recorded.
 */
#include <inttypes.h>
#include <math.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "train/figures.h"
#include "train/settings.h"

bool train_session_stopped(const struct train_session *s)
{
    return s->team.worker != NULL ? s->verdict.stop : base_stop_signal() != 0;
}

bool train_session_halts(const struct train_session *s)
{
    return train_session_stopped(s) || s->verdict.renew || s->verdict.news || s->verdict.shares;
}

bool train_session_stale(const struct train_session *s)
{
    return s->job->patience > 0 && s->state.position.stale_epochs >= s->job->patience;
}

/* The epoch's samples are all in the weights, and it waits to be judged. */
static bool epoch_is_over(const struct train_session *s)
{
    return s->state.position.cursor == s->count[DATA_TRAIN];
}

/* The step after which all workers meet next: the epoch's last, one that is to be saved, or the
 * run's last, whichever comes first. Nothing else knows when a meeting is due. */
static int64_t next_meeting(const struct train_session *s)
{
    const struct train_position *p = &s->state.position;
    int64_t left = s->count[DATA_TRAIN] - p->cursor, every = s->plan.save_every;
    int64_t meeting = p->step + (left + s->plan.batch - 1) / s->plan.batch;
    int64_t save = every > 0 ? (p->step / every + 1) * every : meeting;

    if (save < meeting)
        meeting = save;
    return meeting < s->plan.last_step || epoch_is_over(s) ? meeting : s->plan.last_step;
}

/* ---- an epoch's end ---- */

static bool test_is_due(const struct train_session *s)
{
    const struct train_job *job = s->job;
    int64_t epoch = s->state.position.epoch + 1;

    return job->test && s->count[DATA_TEST] > 0 &&
           (s->state.position.step >= s->plan.last_step ||
            (s->plan.eval_every > 0 && epoch % s->plan.eval_every == 0));
}

static bool validation_is_due(const struct train_session *s)
{
    return s->count[DATA_VALIDATION] > 0 &&
           (s->task->sweeps == NULL || s->task->sweeps->settled(s)) &&
           (s->state.position.step >= s->plan.last_step ||
            (s->state.position.epoch + 1) % s->plan.judge_every == 0);
}

/* Validation decides what is best and when to give up; true: this epoch is the best. */
static bool judge(struct train_session *s, const double *score)
{
    struct train_position *p = &s->state.position;
    double validation = train_score_mean(score, TRAIN_SCORE_LOSS);
    bool better =
        isfinite(validation) && (p->best_validation < 0 || validation < p->best_validation);

    p->stale_epochs = better ? 0 : p->stale_epochs + s->plan.judge_every;
    if (better) {
        p->best_validation = validation;
        p->best_step = p->step;
    }
    return better;
}

static void close_epoch(struct train_position *p)
{
    p->epoch_loss = p->loss_sum / (double)p->seen;
    p->epoch_accuracy = (double)p->correct / (double)p->seen;
    p->epoch++;
    p->cursor = p->correct = p->seen = 0;
    p->loss_sum = 0;
}

static struct train_scored scored(const struct train_session *s, const double *score)
{
    if (score == NULL)
        return (struct train_scored){0};
    return (struct train_scored){true, train_score_mean(score, TRAIN_SCORE_LOSS),
                                 s->task->graded(s, score)};
}

/* An epoch of many that are short is told with others. */
static bool is_told(const struct train_session *s)
{
    const struct train_position *p = &s->state.position;

    return s->tested || p->epoch % s->plan.tell_every == 0 || p->step >= s->plan.last_step;
}

/* Into the journal and, so that a resumed run's report has all epochs, into run.json. */
static base_status record_epoch(struct train_session *s, const double *validation)
{
    json_t *epoch = train_journal_epoch(&s->journal, &s->state.position, scored(s, validation),
                                        scored(s, s->tested ? s->test : NULL));

    train_journal_figures(&s->journal, &s->state.position, s->figures);
    json_array_append_new(json_object_get(s->run.json, "epochs"), epoch);
    if (!train_team_leads(&s->team))
        return BASE_OK;
    train_journal_flush(&s->journal); /* a successor tells the steps after an epoch, no epochs */
    return train_run_save(&s->run, "running");
}

/* The training goes on without what cannot be recorded. */
static void record_more(struct train_session *s)
{
    if (!train_team_leads(&s->team) || s->task->record == NULL)
        return;
    if (s->task->record(s) != BASE_OK)
        base_warn("epoch %" PRId64 " is not recorded: %s", s->state.position.epoch, base_message());
}

/* Up to the comparison the epoch is open, with all its samples seen: a run that is interrupted or
 * resumed there, or whose view loses a member, begins with the validation. From there on no worker
 * waits for another. The test alone may be cut short by a signal: that changes nothing. */
static base_status end_epoch(struct train_session *s)
{
    base_status st = BASE_OK, tested = BASE_OK;
    double *validation = NULL;
    /* When the run was cut short in this very place, its checkpoint has the epoch open. */
    bool better, saved_open = s->saved_step == s->state.position.step;

    if (validation_is_due(s)) {
        validation = base_calloc(s->task->score_count(s), sizeof *validation);
        TRY(train_session_score(s, DATA_VALIDATION, validation));
    }
    if (test_is_due(s))
        tested = train_session_test(s);
    if (tested != BASE_ERR_INTERRUPTED)
        TRY(tested);
    TRY(train_session_unite(s));
    TRY(train_figures_gather(s));
    TRY(train_trace_gather(s));
    TRY(train_session_compare(s));
    better = validation != NULL && judge(s, validation);
    close_epoch(&s->state.position);
    if (is_told(s) || validation != NULL)
        TRY(record_epoch(s, validation)); /* first: resuming takes out what a checkpoint lacks */
    record_more(s);
    if (saved_open)
        s->saved_step = -1;
    if (train_session_save_is_due(s) || better || saved_open)
        TRY(train_session_save(s));
    TRY(train_session_mark_best(s));
    st = tested;
out:
    base_free(validation);
    return st;
}

static base_status meet(struct train_session *s)
{
    base_status st = BASE_OK;

    if (train_team_leads(&s->team))
        TRY(train_session_keep_folder(s));
    if (epoch_is_over(s))
        st = end_epoch(s);
    else if (train_session_save_is_due(s))
        st = train_session_save(s);
out:
    return st;
}

/* ---- views ---- */

/* Everything from the position to the run's end, in this view. */
static base_status run_view(struct train_session *s)
{
    base_status st = BASE_OK;

    TRY(train_shares_resume(s));
    while ((s->state.position.step < s->plan.last_step || epoch_is_over(s)) &&
           !train_session_stale(s) && !train_session_halts(s)) {
        TRY(s->closed ? s->task->solve(s) : s->strategy->leg(s, next_meeting(s)));
        train_trace_end(&s->trace);
        if (s->verdict.news)
            TRY(train_settings_take(s));
        if (s->verdict.shares)
            TRY(train_shares_take(s));
        TRY(meet(s));
    }
    if (s->verdict.renew)
        goto out;
    if (train_session_stale(s))
        base_info("no better validation loss for %" PRId64 " epoch%s: stopped",
                  s->state.position.stale_epochs, base_plural(s->state.position.stale_epochs));
    TRY(train_session_save(s));
    if (s->job->test && !train_session_stopped(s) && s->count[DATA_TEST] > 0) {
        if (!s->tested)
            TRY(train_session_test(s));
        if (train_session_stale(s) && s->job->checkpoint)
            TRY(train_session_test_best(s));
    }
    TRY(train_session_finish(s));
out:
    return st;
}

/* From view to view: after a loss, and when workers have come. */
static base_status run_views(struct train_session *s)
{
    base_status st = run_view(s);

    while (st == BASE_ERR_PEER_LOST || (st == BASE_OK && s->verdict.renew)) {
        if (st == BASE_ERR_PEER_LOST)
            base_info("%s", base_message());
        TRY(train_session_enter(s));
        st = run_view(s);
    }
out:
    return st;
}

base_status train_loop(struct train_session *s)
{
    base_status st;

    train_clock_start(&s->clock);
    s->clock.trace = &s->trace;
    st = run_views(s);
    if (st == BASE_ERR_INTERRUPTED && s->team.worker != NULL) {
        TRY(train_session_save_alone(s));
    } else if (st == BASE_ERR_INTERRUPTED) { /* inside an evaluation: the step is complete */
        TRY(train_session_save(s));
        TRY(train_session_finish(s));
    } else if (st != BASE_OK && s->data_failed && s->team.exchange.size == 1) {
        st = train_session_save_failed(s, st); /* of several workers, another one saves */
    }
out:
    base_progress_clear();
    return st;
}
