/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of a round. What is committed is the round. After a loss the next view
 * goes on with it: the manager has the results that came, and each worker its newest one, or the
 * block that it is in the middle of.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "train/strategies/downpour/downpour.h"

/* Weights and statistics into one row. */
void downpour_fill(const struct train_session *s, float *row)
{
    size_t floats = s->state.floats;

    memcpy(row, s->state.weights, floats * sizeof *row);
    memcpy(row + floats, s->state.statistics, nn_graph_stat_floats(s->state.graph) * sizeof *row);
}

/* ---- it begins ---- */

/* What each worker knows of a round that may be this one. */
struct offer {
    struct downpour_round round;
    bool knows;
    bool keeps; /* the manager, that has its ledger */
    int64_t rounds;
};

/* The same round in the same blocks goes on, if a worker knows of it; the manager's word first. */
static base_status downpour_agree(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    struct downpour_round *r = &d->solo.round;
    const struct train_exchange *x = &s->team.exchange;
    bool keeps = x->rank == 0 && d->ledger.blocks != NULL;
    struct offer mine = {.round = keeps ? d->ledger.round : d->solo.own.round,
                         .knows = keeps || d->solo.own.valid,
                         .keeps = keeps,
                         .rounds = d->rounds};
    struct offer all[COMM_MAX_WORKERS];

    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    r->blocks = (uint32_t)(x->size - (options->apart && x->size > 1));
    if (options->split == DOWNPOUR_SPLIT_LOCAL)
        r->blocks = (uint32_t)x->size; /* one apart has an empty one */
    for (int i = x->size - 1; i >= 0; i--) {
        struct downpour_round known = all[i].round;

        d->rounds = all[i].rounds > d->rounds ? all[i].rounds : d->rounds;
        known.blocks = r->blocks;
        if (all[i].knows && all[i].round.blocks > 0 && all[i].round.blocks <= COMM_MAX_WORKERS &&
            downpour_round_same(&known, r))
            r->blocks = all[i].round.blocks;
    }
    r->number = d->rounds;
    if (!all[0].keeps || !downpour_round_same(&all[0].round, r)) /* what counted is lost */
        downpour_forget_settled(d);
out:
    return st;
}

/* A round ends with its view where changes were added to what the manager had, or blocks belong to
 * ranks. */
static bool downpour_is_bound(const struct downpour_options *options)
{
    return options->push_every > 0 || options->split == DOWNPOUR_SPLIT_LOCAL;
}

base_status downpour_round_begin(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    double began;

    TRY(downpour_solo_begin(&d->solo, s, goal));
    if (d->begins && downpour_is_bound(options)) {
        d->solo.own.valid = d->solo.own.late = false;
        downpour_ledger_forget(&d->ledger);
        downpour_forget_settled(d);
        d->ledger.once = true;
    }
    d->begins = false;
    if (options->push_every > 0) {
        downpour_fill(s, d->solo.pushed);
        downpour_fill(s, d->fetched);
    }
    TRY(downpour_agree(s));
    began = base_now();
    TRY(downpour_solo_divide(&d->solo, s, downpour_computes(s)));
    d->split_seconds += base_now() - began;
    if (d->manager != NULL) {
        downpour_ledger_begin(&d->ledger, &d->solo.round, d->solo.counts);
        d->ledger.awaited = d->aggregation.rule->trusts ? train_team_id(&s->team) : 0;
        if (options->push_every > 0)
            downpour_fill(s, downpour_manager_centre(d->manager));
        TRY(downpour_manager_begin(d->manager, downpour_computes(s)));
    }
out:
    return st;
}

/* ---- it ends ---- */

/* What rank 0 tells all at the end of a round. */
struct ending {
    int32_t how; /* enum train_ending */
    bool stop, renew;
    struct train_outcome outcome;
    int64_t samples[COMM_MAX_WORKERS]; /* of each rank, that are in the update */
    bool counts[COMM_MAX_WORKERS];     /* … and is its newest result? */
};

/* The loss of each update on samples of the validation part. */
static base_status downpour_judge(struct train_session *s, struct train_row *rows, int count)
{
    enum { SAMPLES = 512 };
    base_status st = BASE_OK;
    const struct downpour *d = s->strategy_state;
    uint32_t all = s->count[DATA_VALIDATION];
    struct data_share first = {0, all < SAMPLES ? all : SAMPLES, all};
    double *score = base_calloc(s->task->score_count(s), sizeof *score);

    for (int i = 0; i < count; i++) {
        downpour_solo_rebase(&d->solo, s, rows[i].values);
        memset(score, 0, s->task->score_count(s) * sizeof *score);
        TRY(s->task->score(s, DATA_VALIDATION, first, score));
        rows[i].judged = train_score_mean(score, TRAIN_SCORE_LOSS);
    }
out:
    base_free(score);
    return st;
}

/* What the rule finds odd in the updates of this round. */
static void downpour_tell_suspects(struct train_session *s, const struct train_row *rows, int count)
{
    const struct downpour *d = s->strategy_state;
    struct base_str ids = {0};

    for (int i = 0; i < count; i++)
        if (rows[i].suspect)
            base_str_add(&ids, "%s%" PRIu32, ids.length > 0 ? "," : "", rows[i].worker);
    if (ids.length > 0)
        base_event(s->journal.events,
                   "{\"event\":\"suspects\",\"step\":%" PRId64 ",\"workers\":[%s]}",
                   d->solo.round.goal, ids.text);
    base_str_fini(&ids);
}

/* Rank 0: the round's beginning, changed by one update of all results, into the state. */
static base_status downpour_aggregate(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_row *rows = base_calloc(d->solo.round.blocks + d->ledger.late_count, sizeof *rows);
    int count = downpour_ledger_rows(&d->ledger, rows);
    float *update = NULL, *forged = NULL;

    train_fault_at(&s->fault, "aggregate", d->solo.round.step + 1);
    for (int i = 0; i < count; i++)
        rows[i].trusted = rows[i].worker == train_team_id(&s->team);
    TRY(base_tensor(downpour_solo_floats(s), sizeof *update, "the round's update", &update));
    TRY(train_attackers_forge(&s->attackers, rows, count, downpour_solo_floats(s),
                              (uint64_t)s->job->seed, d->solo.round.step, &forged));
    if (d->aggregation.rule->judges)
        TRY(downpour_judge(s, rows, count));
    TRY(train_aggregate(&d->aggregation, rows, count, downpour_solo_floats(s), update, NULL));
    downpour_tell_suspects(s, rows, count);
    downpour_solo_rebase(&d->solo, s, update);
out:
    base_free(forged);
    base_free(update);
    base_free(rows);
    return st;
}

/* Rank 0: what all changes have made of the weights, into the state. */
static void downpour_take_centre(struct train_session *s)
{
    struct downpour *d = s->strategy_state;
    const float *centre = downpour_manager_centre(d->manager);
    size_t floats = s->state.floats;

    train_fault_at(&s->fault, "aggregate", d->solo.round.step + 1);
    memcpy(s->state.weights, centre, floats * sizeof *centre);
    memcpy(s->state.statistics, centre + floats,
           nn_graph_stat_floats(s->state.graph) * sizeof *centre);
}

/* The position after the round, the same on every worker. */
static void downpour_advance(struct train_session *s, const struct ending *e)
{
    struct downpour *d = s->strategy_state;
    struct train_position *p = &s->state.position;
    int64_t steps = d->solo.round.goal - d->solo.round.step;

    *p = d->solo.base.position;
    p->step = d->solo.round.goal;
    p->cursor += downpour_solo_samples(s, &d->solo.round);
    for (size_t i = 0; i < nn_graph_stats(s->state.graph); i++)
        s->state.tracked[i] = d->solo.base.tracked[i] + steps;
    train_step_count(s, &e->outcome, e->samples[s->team.exchange.rank]);
    s->tested = false;
    s->united_step = p->step;
    d->rounds++;
}

static void downpour_tell(const struct train_session *s, const struct ending *e)
{
    const struct downpour *d = s->strategy_state;
    const struct downpour_ledger_counts *c = &d->ledger.counts;

    base_event(s->journal.events,
               "{\"event\":\"round\",\"step\":%" PRId64 ",\"epoch\":%" PRId64
               ",\"blocks\":%u,\"samples\":%" PRId64 ",\"results\":%" PRId64
               ",\"reissued\":%" PRId64 ",\"refused\":%" PRId64 ",\"surplus\":%" PRId64
               ",\"late\":%" PRId64 ",\"left_out\":%" PRId64 "}",
               d->solo.round.goal, d->solo.round.epoch + 1, d->solo.round.blocks, e->outcome.seen,
               c->results, c->reissued, c->refused, c->surplus, c->late, c->left_out);
}

static void downpour_describe_ending(struct train_session *s, enum train_ending how,
                                     struct ending *e)
{
    const struct downpour *d = s->strategy_state;

    *e = (struct ending){.how = how,
                         .stop = how == TRAIN_ENDING_STOP || train_team_stopping(&s->team),
                         .renew = how == TRAIN_ENDING_RENEW || train_team_outdated(&s->team)};
    if (how != TRAIN_ENDING_COMMIT)
        return;
    e->outcome = downpour_ledger_outcome(&d->ledger);
    for (int rank = 0; rank < s->team.exchange.size; rank++) {
        e->samples[rank] = downpour_ledger_samples_of(
            &d->ledger, s->team.worker != NULL ? s->team.view.members[rank].id : 0);
        e->counts[rank] = downpour_manager_has_counted(d->manager, rank);
    }
}

/* Rank 0's weights to all. Packed, they are their change in the round, and each worker adds what it
 * can unpack to the round's beginning. */
static base_status downpour_share_weights(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t bytes = s->state.floats * sizeof(float);

    if (!downpour_parcel_packs(&d->parcel)) {
        TRY(train_team_broadcast(&s->team, 0, s->state.weights, bytes));
        d->parcel.pulled += d->manager != NULL ? (int64_t)bytes * (s->team.exchange.size - 1) : 0;
        goto out;
    }
    if (d->manager != NULL && !train_state_finite(&s->state))
        TRY(base_fail(BASE_ERR_DIVERGED,
                      "the weights are no longer finite; try a lower --lr or --clip 1"));
    TRY(downpour_parcel_share(&d->parcel, d->solo.base.weights, s->state.weights));
out:
    return st;
}

/* The update is everywhere, or nowhere. */
static base_status downpour_commit(struct train_session *s, const struct ending *e)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    size_t statistics = nn_graph_stat_floats(s->state.graph);

    if (d->manager != NULL && d->fetched != NULL)
        downpour_take_centre(s);
    else if (d->manager != NULL)
        TRY(downpour_aggregate(s));
    train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    TRY(downpour_share_weights(s));
    if (statistics > 0)
        TRY(train_team_broadcast(&s->team, 0, s->state.statistics, statistics * sizeof(float)));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    downpour_parcel_commit(&d->parcel, d->parcel.residual);
    downpour_advance(s, e);
    if (d->manager != NULL) {
        downpour_ledger_commit(&d->ledger, options->quorum < 1);
        downpour_tell(s, e);
    }
out:
    return st;
}

base_status downpour_round_end(struct train_session *s, const struct train_answer *answer)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    struct ending e;

    if (d->manager != NULL) {
        TRY(downpour_manager_end(d->manager, false));
        downpour_describe_ending(s, downpour_manager_ending(d->manager), &e);
    }
    train_clock_enter(&s->clock, TRAIN_WAIT);
    TRY(train_team_broadcast(&s->team, 0, &e, sizeof e));
    if (d->manager == NULL && options->latency > 0) /* of the update that follows */
        base_sleep_until(base_now() + options->latency);
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    s->verdict.stop = e.stop;
    s->verdict.renew = e.renew;
    if (e.how == TRAIN_ENDING_COMMIT) {
        downpour_settle(d, e.counts[s->team.exchange.rank], true);
        d->momentum.counts = e.counts[s->team.exchange.rank];
        TRY(downpour_commit(s, &e));
        train_momentum_commit(&d->momentum, downpour_extra(s, TRAIN_MOMENTUM));
        d->solo.own.late = d->solo.own.valid && !d->solo.own.complete && answer->wanted;
        d->solo.own.valid = d->solo.own.late;
    } else {
        train_snapshot_restore(&d->solo.base, &s->state);
    }
out:
    return st;
}
