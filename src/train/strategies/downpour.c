/* SPDX-License-Identifier: MIT
 *
 * Downpour's manager and workers (after Dean et al., NIPS 2012, and the form that trains whole
 * blocks): a leg is a *round*. Its samples are divided into blocks, the manager at rank 0 gives out
 * the blocks by number, each worker trains alone over its block and returns how its weights have
 * changed, and the manager makes one update of all changes (train/aggregator.h), which all workers
 * get before they meet. Of strategies/downpour/, manager.h has the talk, ledger.h the rules about
 * blocks that are lost, late or wrong, solo.h the work on a block, line.h the worker's end of the
 * talk.
 *
 * What is committed is the round. After a loss the next view goes on with it: the manager has the
 * results that came, and each worker its newest one, or the block that it is in the middle of. The
 * optimiser's slots are each worker's own; a checkpoint has rank 0's.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/engine.h"
#include "comm/region.h"
#include "comm/transport.h"
#include "train/memory.h"
#include "train/strategies/downpour/line.h"
#include "train/strategies/downpour/manager.h"
#include "train/strategies/downpour/solo.h"

struct options {
    enum train_split split;
    int64_t push_every, fetch_every;
    double quorum, grace;
    bool apart;
};

struct downpour {
    /* Across views. */
    struct downpour_ledger ledger; /* rank 0's */
    struct downpour_solo solo;
    int64_t rounds; /* that were committed, as far as this worker knows */

    /* Of a view. */
    const struct train_aggregator *aggregator;
    void *aggregator_options;
    struct downpour_manager *manager; /* rank 0's */
    struct downpour_line line;        /* the others' */
    struct comm_region *region;       /* that this worker reads the centre from; or NULL */
    float *fetched;                   /* the centre, where changes are added as they come */
    int64_t steps;                    /* of this worker in the round */
    bool begins;                      /* no round of the view has begun */
};

/* What rank 0 tells all at the end of a round. */
struct ending {
    int32_t how; /* enum train_ending */
    bool stop, renew;
    struct train_outcome outcome;
    int64_t samples[COMM_MAX_WORKERS]; /* of each rank, that are in the update */
};

static bool downpour_computes(const struct train_session *s)
{
    const struct options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;

    return x->rank > 0 || x->size == 1 || !options->apart;
}

/* ---- a view ---- */

static void downpour_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct options *options = q->options;
    const struct train_sizes *sizes = q->sizes;
    double row = sizes->weights + sizes->statistics;

    /* The round's beginning, and this worker's result; at the manager those of all workers, and
     * room for each to come. */
    m->of[TRAIN_MEMORY_SPARE].own += row + sizes->slots * sizes->weights + row;
    if (options->push_every > 0)
        m->of[TRAIN_MEMORY_SPARE].own += 2 * row;
    if (options->push_every > 0 && q->seat.rank == 0) {
        m->of[TRAIN_MEMORY_SPARE].own += row;
        m->of[TRAIN_MEMORY_COMMUNICATION].shared += 2 * row;
    }
    if (q->seat.rank == 0)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += (2 * q->seat.workers - 1) * row;
}

static base_status downpour_check(const struct train_session *s)
{
    const struct options *options = s->options;
    const struct downpour *d = s->strategy_state;

    if (s->task->take == NULL || s->task->order == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "strategy downpour gives out blocks of samples, which "
                         "task %s cannot compute",
                         s->task->name);
    if (s->job->sync_bn)
        return base_fail(BASE_ERR_USAGE, "--sync-bn normalises over the samples of all workers, "
                                         "but downpour's train alone; leave one out");
    if (options->push_every > 0 && (s->job->aggregate != NULL || options->quorum < 1))
        return base_fail(BASE_ERR_USAGE,
                         "downpour:push-every adds changes as they come: it has no use for "
                         "--aggregate and quorum");
    if (options->fetch_every > 0 && options->push_every == 0)
        return base_fail(BASE_ERR_USAGE, "downpour:fetch-every is for push-every alone: without it "
                                         "workers get the weights at the end of a round");
    if (s->closed && options->split == DOWNPOUR_SPLIT_LOCAL)
        return base_fail(BASE_ERR_USAGE,
                         "%s is computed from shares of one set of data; "
                         "downpour:split=local has several",
                         s->job->model);
    if (d->aggregator->judges && s->count[DATA_VALIDATION] == 0)
        return base_fail(BASE_ERR_USAGE,
                         "--aggregate %s judges updates by samples that no worker trains on: add "
                         "--validation 0.05",
                         d->aggregator->name);
    return BASE_OK;
}

/* Changes are added as they come: this worker reads their sum from shared memory, or is sent it. */
static base_status downpour_open_centre(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t floats = downpour_solo_floats(s);

    TRY(base_tensor(floats, sizeof(float), "the fetched weights", &d->fetched));
    if (d->manager == NULL && (comm_group_can(s->team.group, 0) & COMM_CAN_SHARE) != 0)
        TRY(comm_region_open(s->team.group, DOWNPOUR_MANAGER_REGION, floats * sizeof(float),
                             &d->region));
out:
    return st;
}

static base_status downpour_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct downpour *d = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    struct train_rules rules = {.quorum = options->quorum,
                                .grace = options->grace,
                                .fixed = options->split == DOWNPOUR_SPLIT_LOCAL,
                                .adds = options->push_every > 0};
    const char *name = s->job->aggregate != NULL ? s->job->aggregate : TRAIN_AGGREGATOR;

    TRY(train_aggregator_find(name, &d->aggregator, &d->aggregator_options));
    TRY(downpour_check(s));
    if (x->rank == 0)
        TRY(downpour_manager_open(&s->team, &d->ledger, &rules, downpour_solo_floats(s),
                                  &d->manager));
    else
        downpour_line_open(&d->line, &s->team);
    if (rules.adds)
        TRY(downpour_open_centre(s));
    if (x->size > 1)
        TRY(comm_engine_begin(coll_group(x->coll)));
    d->begins = true;
    d->solo.split = options->split;
    TRY(downpour_solo_open(&d->solo, s, rules.adds));
out:
    return st;
}

static void downpour_close(struct train_session *s)
{
    struct downpour *d = s->strategy_state;

    if (s->team.group != NULL) /* first: until then the engine may write to what goes */
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group: known */
    downpour_manager_close(d->manager);
    base_free(d->aggregator_options);
    comm_region_close(d->region);
    base_free(d->fetched);
    d->region = NULL;
    d->fetched = NULL;
    downpour_solo_close(&d->solo);
    d->manager = NULL;
    d->aggregator_options = NULL;
}

static void downpour_fini(void *state)
{
    struct downpour *d = state;

    downpour_ledger_fini(&d->ledger);
    downpour_solo_fini(&d->solo);
}

/* ---- a round begins ---- */

/* What each worker knows of a round that may be this one. */
struct offer {
    struct downpour_round round;
    bool knows;
    int64_t rounds;
};

/* The same round in the same blocks goes on, if a worker knows of it; the manager's word first. */
static base_status downpour_agree(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct downpour *d = s->strategy_state;
    struct downpour_round *r = &d->solo.round;
    const struct train_exchange *x = &s->team.exchange;
    bool keeps = x->rank == 0 && d->ledger.blocks != NULL;
    struct offer mine = {.round = keeps ? d->ledger.round : d->solo.own.round,
                         .knows = keeps || d->solo.own.valid,
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
out:
    return st;
}

/* A round ends with its view where changes were added to what the manager had, or blocks belong to
 * ranks. */
static bool downpour_is_bound(const struct options *options)
{
    return options->push_every > 0 || options->split == DOWNPOUR_SPLIT_LOCAL;
}

/* Weights and statistics into one row. */
static void downpour_fill(const struct train_session *s, float *row)
{
    size_t floats = s->state.floats;

    memcpy(row, s->state.weights, floats * sizeof *row);
    memcpy(row + floats, s->state.statistics, nn_graph_stat_floats(s->state.graph) * sizeof *row);
}

static base_status downpour_begin_round(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct downpour *d = s->strategy_state;

    TRY(downpour_solo_begin(&d->solo, s, goal));
    if (d->begins && downpour_is_bound(options)) {
        d->solo.own.valid = d->solo.own.late = false;
        downpour_ledger_forget(&d->ledger);
        d->ledger.once = true;
    }
    d->begins = false;
    if (options->push_every > 0)
        downpour_fill(s, d->solo.pushed);
    TRY(downpour_agree(s));
    TRY(downpour_solo_divide(&d->solo, s, downpour_computes(s)));
    if (d->manager != NULL) {
        downpour_ledger_begin(&d->ledger, &d->solo.round, d->solo.counts);
        if (options->push_every > 0)
            downpour_fill(s, downpour_manager_centre(d->manager));
        TRY(downpour_manager_begin(d->manager, downpour_computes(s)));
    }
out:
    return st;
}

/* ---- the talk ---- */

/* For tests: what a worker that is wrong would send. */
static size_t downpour_spoil(struct train_session *s, struct downpour_call *call)
{
    struct downpour *d = s->strategy_state;
    int64_t step = d->solo.round.step + 1;
    size_t floats = downpour_solo_floats(s);

    if (train_fault_hits(&s->fault, "rubbish-nan", step))
        d->solo.own.values[floats / 2] = NAN;
    if (train_fault_hits(&s->fault, "rubbish-epoch", step))
        call->round.epoch++;
    if (train_fault_hits(&s->fault, "rubbish-block", step))
        call->block = (call->block + 1) % d->solo.round.blocks;
    return train_fault_hits(&s->fault, "rubbish-size", step) ? floats / 2 : floats;
}

/* Says what this worker has, and hears what it is to do. */
static base_status downpour_call(struct train_session *s, enum downpour_call_kind kind,
                                 struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_own *own = &d->solo.own;
    bool result = kind == DOWNPOUR_CALL_RESULT;
    struct downpour_call call = {
        .kind = kind,
        .block = own->block,
        .round =
            kind == DOWNPOUR_CALL_ASK || kind == DOWNPOUR_CALL_BYE ? d->solo.round : own->round,
        .outcome = own->outcome,
    };
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    float **values = kind == DOWNPOUR_CALL_FETCH ? &d->fetched : &own->values;
    size_t floats = result ? downpour_spoil(s, &call) : downpour_solo_floats(s);

    if (d->manager != NULL)
        TRY(downpour_manager_call(d->manager, &call, values, answer_p));
    else
        TRY(downpour_line_call(&d->line, &call, own->values, floats, answer_p));
    if (result && own->values == NULL) /* the ledger has it */
        own->valid = false;
    train_clock_enter(&s->clock, was);
out:
    return st;
}

/* Changes are added as they come: this worker's goes to the manager. */
static base_status downpour_push(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;

    TRY(downpour_solo_measure(&d->solo, s));
    TRY(downpour_call(s, DOWNPOUR_CALL_PUSH, answer_p));
    downpour_fill(s, d->solo.pushed);
out:
    return st;
}

/* … and what all have made of the weights comes back. */
static base_status downpour_fetch(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t floats = downpour_solo_floats(s);
    uint64_t version = 0;

    if (d->region != NULL) {
        TRY(comm_region_read(d->region, 0, floats * sizeof(float), d->fetched,
                             base_now() + DOWNPOUR_MANAGER_PATIENCE, &version));
    } else {
        TRY(downpour_call(s, DOWNPOUR_CALL_FETCH, answer_p));
        if (answer_p->kind == TRAIN_ANSWER_CLOSE)
            goto out;
        if (d->manager == NULL)
            TRY(downpour_line_fetch(&d->line, d->fetched, floats));
    }
    downpour_solo_fetch(&d->solo, s, d->fetched);
out:
    return st;
}

/* After a step. Has the manager said that the round is over? Its answer is then in `context`. */
static base_status downpour_look(struct train_session *s, void *context, bool *over_p)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct downpour *d = s->strategy_state;
    struct train_answer *answer = context;
    int64_t fetch = options->fetch_every > 0 ? options->fetch_every : options->push_every;

    TRY(d->manager != NULL ? downpour_manager_look(d->manager, over_p, context)
                           : downpour_line_look(&d->line, over_p, context));
    d->steps++;
    if (options->push_every == 0 || *over_p || d->solo.own.done == d->solo.own.samples)
        goto out; /* the last change goes with the result */
    if (d->steps % options->push_every == 0)
        TRY(downpour_push(s, answer));
    if (answer->kind != TRAIN_ANSWER_CLOSE && d->steps % fetch == 0)
        TRY(downpour_fetch(s, answer));
    *over_p = answer->kind == TRAIN_ANSWER_CLOSE;
out:
    return st;
}

/* What this worker begins the round with. */
static base_status downpour_greet(struct train_session *s, bool *over_p,
                                  struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_own *own = &d->solo.own;

    *over_p = false;
    if (own->valid && own->late && !own->complete)
        TRY(downpour_solo_train(&d->solo, s, downpour_look, answer_p, over_p));
    if (*over_p)
        goto out;
    TRY(downpour_call(s,
                      !own->valid     ? DOWNPOUR_CALL_ASK
                      : own->complete ? DOWNPOUR_CALL_RESULT
                                      : DOWNPOUR_CALL_CONTINUE,
                      answer_p));
    if (own->late && own->complete)
        own->valid = own->late = false;
    *over_p = answer_p->kind == TRAIN_ANSWER_CLOSE;
out:
    return st;
}

/* Blocks one after the other, until the round is over. */
static base_status downpour_work(struct train_session *s, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    bool over = false;

    TRY(downpour_greet(s, &over, answer_p));
    while (!over) {
        if (answer_p->kind != TRAIN_ANSWER_BLOCK || answer_p->block >= d->solo.round.blocks ||
            (d->solo.split == DOWNPOUR_SPLIT_LOCAL &&
             answer_p->block != (uint32_t)s->team.exchange.rank))
            TRY(base_fail(BASE_ERR_DATA, "the manager gave block %u of %u", answer_p->block,
                          d->solo.round.blocks));
        downpour_solo_accept(&d->solo, answer_p->block);
        if (d->fetched != NULL)
            TRY(downpour_fetch(s, answer_p));
        if (answer_p->kind == TRAIN_ANSWER_CLOSE)
            break;
        train_fault_at(&s->fault, "block-issued", d->solo.round.step + 1);
        TRY(downpour_solo_train(&d->solo, s, downpour_look, answer_p, &over));
        if (over)
            break;
        train_fault_at(&s->fault, "block-done", d->solo.round.step + 1);
        TRY(downpour_call(s, DOWNPOUR_CALL_RESULT, answer_p));
        if (d->fetched != NULL) /* all of it is on its way */
            downpour_fill(s, d->solo.pushed);
        over = answer_p->kind == TRAIN_ANSWER_CLOSE;
    }
out:
    return st;
}

static base_status downpour_say_bye(struct train_session *s)
{
    struct train_answer none;

    return downpour_call(s, DOWNPOUR_CALL_BYE, &none);
}

/* ---- a round ends ---- */

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

/* Rank 0: the round's beginning, changed by one update of all results, into the state. */
static base_status downpour_aggregate(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_row *rows = base_calloc(d->solo.round.blocks + d->ledger.late_count, sizeof *rows);
    int count = downpour_ledger_rows(&d->ledger, rows);
    float *update = NULL;

    train_fault_at(&s->fault, "aggregate", d->solo.round.step + 1);
    TRY(base_tensor(downpour_solo_floats(s), sizeof *update, "the round's update", &update));
    if (d->aggregator->judges)
        TRY(downpour_judge(s, rows, count));
    TRY(train_aggregate(d->aggregator, d->aggregator_options, rows, count, downpour_solo_floats(s),
                        update, NULL));
    downpour_solo_rebase(&d->solo, s, update);
out:
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

static bool downpour_own_data(const void *options)
{
    return ((const struct options *)options)->split == DOWNPOUR_SPLIT_LOCAL;
}

static unsigned downpour_roles(const struct train_session *s, int rank)
{
    const struct options *options = s->options;
    unsigned works = options->apart && s->team.exchange.size > 1 ? 0 : CLUSTER_ROLE_WORKER;

    return rank == 0 ? CLUSTER_ROLE_MANAGER | works : CLUSTER_ROLE_WORKER;
}

/* The manager's; the other workers have counted nothing. */
static json_t *downpour_figures(const struct train_session *s)
{
    const struct downpour *d = s->strategy_state;
    struct downpour_ledger_counts c = {0};
    json_t *ages = json_array();

    if (d->manager != NULL)
        c = downpour_manager_counts(d->manager);
    for (int i = 0; i < DOWNPOUR_LEDGER_AGES; i++)
        json_array_append_new(ages, json_integer(c.late_by_age[i]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "rounds", (json_int_t)c.rounds,
                     "results", (json_int_t)c.results, "reissued", (json_int_t)c.reissued,
                     "refused", (json_int_t)c.refused, "surplus", (json_int_t)c.surplus, "late",
                     (json_int_t)c.late, "left_out", (json_int_t)c.left_out, "late_by_age", ages);
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
    for (int rank = 0; rank < s->team.exchange.size; rank++)
        e->samples[rank] = downpour_ledger_samples_of(
            &d->ledger, s->team.worker != NULL ? s->team.view.members[rank].id : 0);
}

/* The update is everywhere, or nowhere. */
static base_status downpour_commit(struct train_session *s, const struct ending *e)
{
    base_status st = BASE_OK;
    const struct options *options = s->options;
    struct downpour *d = s->strategy_state;
    size_t statistics = nn_graph_stat_floats(s->state.graph);

    if (d->manager != NULL && d->fetched != NULL)
        downpour_take_centre(s);
    else if (d->manager != NULL)
        TRY(downpour_aggregate(s));
    train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    TRY(train_team_broadcast(&s->team, 0, s->state.weights, s->state.floats * sizeof(float)));
    if (statistics > 0)
        TRY(train_team_broadcast(&s->team, 0, s->state.statistics, statistics * sizeof(float)));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    downpour_advance(s, e);
    if (d->manager != NULL) {
        downpour_ledger_commit(&d->ledger, options->quorum < 1);
        downpour_tell(s, e);
    }
out:
    return st;
}

static base_status downpour_end_round(struct train_session *s, const struct train_answer *answer)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct ending e;

    if (d->manager != NULL) {
        TRY(downpour_manager_end(d->manager, false));
        downpour_describe_ending(s, downpour_manager_ending(d->manager), &e);
    }
    train_clock_enter(&s->clock, TRAIN_WAIT);
    TRY(train_team_broadcast(&s->team, 0, &e, sizeof e));
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    s->verdict.stop = e.stop;
    s->verdict.renew = e.renew;
    if (e.how == TRAIN_ENDING_COMMIT) {
        TRY(downpour_commit(s, &e));
        d->solo.own.late = d->solo.own.valid && !d->solo.own.complete && answer->wanted;
        d->solo.own.valid = d->solo.own.late;
    } else {
        train_snapshot_restore(&d->solo.base, &s->state);
    }
out:
    return st;
}

static base_status downpour_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_clock before = s->clock;
    struct train_answer answer = {0};

    if (goal == s->state.position.step) /* an epoch that waits to be judged */
        return BASE_OK;
    TRY(downpour_begin_round(s, goal));
    if (downpour_computes(s)) {
        TRY(downpour_work(s, &answer));
        TRY(downpour_say_bye(s));
    }
    TRY(downpour_end_round(s, &answer));
out:
    if (st != BASE_OK) {
        if (d->manager != NULL)
            base_ignore(downpour_manager_end(d->manager, true));
        if (st == BASE_ERR_PEER_LOST)
            train_clock_lost(&s->clock, &before);
        train_snapshot_restore(&d->solo.base, &s->state);
    }
    return st;
}

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "split", .argument = "HOW", .kind = BASE_ENUM, .offset = AT(split),
     .names = train_split_names, .help = "how samples are dealt to blocks"},
    {.name = "push-every", .argument = "K", .kind = BASE_INT, .offset = AT(push_every), .max = 1e9,
     .help = "steps after which a worker's change is added, at once; 0: one update a round"},
    {.name = "fetch-every", .argument = "K", .kind = BASE_INT, .offset = AT(fetch_every),
     .max = 1e9, .help = "steps after which it gets the weights; 0: as often as it pushes"},
    {.name = "quorum", .argument = "X", .kind = BASE_REAL, .offset = AT(quorum), .min = 0.01,
     .max = 1, .help = "share of the blocks that ends a round; others count in a later one"},
    {.name = "grace", .argument = "S", .kind = BASE_REAL, .offset = AT(grace), .max = 1e6,
     .help = "seconds that the others have once the quorum is there"},
    {.name = "apart", .kind = BASE_FLAG, .offset = AT(apart),
     .help = "rank 0 manages and computes no block"},
    {0},
};
/* clang-format on */

const struct train_strategy train_strategy_downpour = {
    .name = "downpour",
    .help = "workers train alone over blocks that a manager gives out, and it aggregates",
    .commit_unit = "round",
    .least = 1,
    .aggregates = true,
    .options = table,
    .options_size = sizeof(struct options),
    .defaults = &(const struct options){.quorum = 1},
    .examples = (const char *const[]){"split=equal", "apart", "quorum=0.6,grace=0.05",
                                      "push-every=2,fetch-every=3", NULL},
    .own_data = downpour_own_data,
    .memory = downpour_memory,
    .roles = downpour_roles,
    .figures = downpour_figures,
    .state_size = sizeof(struct downpour),
    .fini = downpour_fini,
    .open = downpour_open,
    .close = downpour_close,
    .leg = downpour_leg,
};
