/* SPDX-License-Identifier: MIT
 *
 * Downpour's manager and workers (after Dean et al., NIPS 2012, and the form that trains whole
 * blocks): a leg is a *round*. Its samples are divided into blocks, the manager at rank 0 gives out
 * the blocks by number, each worker trains alone over its block and returns how its weights have
 * changed, and the manager makes one update of all changes (train/aggregator.h), which all workers
 * get before they meet. Of strategies/downpour/, manager.h has the talk, ledger.h the rules about
 * blocks that are lost, late or wrong, solo.h the work on a block, line.h the worker's end of the
 * talk, parcel.h the formats in which changes travel; round.c begins and ends a round, and work.c
 * is what a worker does in between. This file is the rest: options, a view, a leg.
 *
 * The optimiser's slots are each worker's own; a checkpoint has rank 0's. Of the residuals of a
 * wire it has the mean.
 */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "coll/kernels.h"
#include "comm/engine.h"
#include "comm/transport.h"
#include "train/forecast.h"
#include "train/memory.h"
#include "train/residual.h"
#include "train/strategies/downpour/downpour.h"

float *downpour_extra(struct train_session *s, const char *name)
{
    float **extra = train_state_extra(&s->state, name);

    return extra != NULL ? *extra : NULL;
}

bool downpour_computes(const struct train_session *s)
{
    const struct downpour_options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;

    return x->rank > 0 || x->size == 1 || !options->apart;
}

/* ---- a view ---- */

static void downpour_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct downpour_options *options = q->options;
    const struct train_sizes *sizes = q->sizes;
    double row = sizes->weights + sizes->statistics;
    struct train_wiring wiring = {0};

    /* The round's beginning, and this worker's result; at the manager those of all workers, and
     * room for each to come. */
    m->of[TRAIN_MEMORY_SPARE].own += row + sizes->slots * sizes->weights + row;
    if (options->push_every > 0)
        m->of[TRAIN_MEMORY_SPARE].own += 2 * row;
    if (options->push_every > 0 && q->seat.rank == 0) {
        m->of[TRAIN_MEMORY_SPARE].own += row;
        m->of[TRAIN_MEMORY_COMMUNICATION].shared += 2 * row;
    }
    if (options->momentum > 0) {
        m->of[TRAIN_MEMORY_SLOTS].own += sizes->weights;
        m->of[TRAIN_MEMORY_SPARE].own += sizes->weights;
    }
    if (q->seat.rank == 0)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += (2 * q->seat.workers - 1) * row;
    if (options->wire != NULL && train_wire_find(options->wire, &wiring) == BASE_OK) {
        double packed =
            (double)downpour_parcel_bound(&wiring, (size_t)(sizes->weights / sizeof(float)),
                                          (size_t)(sizes->statistics / sizeof(float)));
        int packs =
            1 + (q->seat.rank == 0) * (q->seat.workers - 1) * (1 + (options->push_every > 0));

        m->of[TRAIN_MEMORY_COMMUNICATION].own += packs * packed;
        if (options->push_every > 0)
            m->of[TRAIN_MEMORY_COMMUNICATION].own += (q->seat.rank == 0 ? 2 : 1) * row;
        if (!wiring.wire->exact) { /* the residual, what it was, and what it may become */
            m->of[TRAIN_MEMORY_SLOTS].own += sizes->weights;
            m->of[TRAIN_MEMORY_SPARE].own += 3 * sizes->weights;
        }
    }
    train_wiring_fini(&wiring);
}

static base_status downpour_check(const struct train_session *s)
{
    const struct downpour_options *options = s->options;
    const struct downpour *d = s->strategy_state;

    if (s->task->take == NULL || s->task->order == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "strategy downpour gives out blocks of samples, which "
                         "task %s cannot compute",
                         s->task->name);
    if (s->job->sync_bn)
        return base_fail(BASE_ERR_USAGE, "--sync-bn normalises over the samples of all workers, "
                                         "but downpour's train alone; leave one out");
    if (options->push_every > 0 &&
        (s->job->aggregate != NULL || options->quorum < 1 || options->momentum > 0))
        return base_fail(BASE_ERR_USAGE,
                         "downpour:push-every adds changes as they come: it has no use for "
                         "--aggregate, quorum and momentum");
    if (s->job->attack != NULL && (options->push_every > 0 || s->closed))
        return base_fail(BASE_ERR_USAGE,
                         "--attack is for updates that an aggregator makes one of; %s",
                         s->closed ? "this model is computed in one step"
                                   : "downpour:push-every adds changes as they come");
    if (options->fetch_every > 0 && options->push_every == 0)
        return base_fail(BASE_ERR_USAGE, "downpour:fetch-every is for push-every alone: without it "
                                         "workers get the weights at the end of a round");
    if (s->closed && options->split == DOWNPOUR_SPLIT_LOCAL)
        return base_fail(BASE_ERR_USAGE,
                         "%s is computed from shares of one set of data; "
                         "downpour:split=local has several",
                         s->job->model);
    if (d->aggregation.rule->trusts && options->apart)
        return base_fail(BASE_ERR_USAGE,
                         "--aggregate %s trusts the worker beside the manager, which "
                         "downpour:apart leaves out",
                         d->aggregation.rule->name);
    if (d->aggregation.rule->judges && s->count[DATA_VALIDATION] == 0)
        return base_fail(BASE_ERR_USAGE,
                         "--aggregate %s judges updates by samples that no worker trains on: add "
                         "--validation 0.05",
                         d->aggregation.rule->name);
    return BASE_OK;
}

/* Changes are added as they come: this worker reads their sum from shared memory, or is sent it. */
static base_status downpour_open_centre(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    size_t floats = downpour_solo_floats(s);

    TRY(base_tensor(floats, sizeof(float), "the fetched weights", &d->fetched));
    if (downpour_parcel_packs(&d->parcel))
        TRY(base_tensor(floats, sizeof(float), "their change", &d->change));
    if (d->manager == NULL && (comm_group_can(s->team.group, 0) & COMM_CAN_SHARE) != 0)
        TRY(comm_region_open(s->team.group, DOWNPOUR_MANAGER_REGION, floats * sizeof(float),
                             &d->region));
out:
    return st;
}

static base_status downpour_open(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct downpour_options *options = s->options;
    struct downpour *d = s->strategy_state;
    const struct train_exchange *x = &s->team.exchange;
    struct train_rules rules = {.quorum = options->quorum,
                                .grace = options->grace,
                                .fixed = options->split == DOWNPOUR_SPLIT_LOCAL,
                                .adds = options->push_every > 0};
    float *residual = downpour_extra(s, TRAIN_RESIDUAL);
    float *mean = downpour_extra(s, TRAIN_MOMENTUM);
    size_t statistics = nn_graph_stat_floats(s->state.graph);
    const char *name = s->job->aggregate != NULL ? s->job->aggregate : TRAIN_AGGREGATOR;

    TRY(train_aggregation_find(name, &d->aggregation));
    d->aggregation.statistics = statistics;
    TRY(downpour_check(s));
    /* The round that this worker left half-way was committed, as the state tells that it got. */
    if (s->state.position.step == d->solo.round.goal) {
        downpour_parcel_commit(&d->parcel, residual);
        train_momentum_commit(&d->momentum, mean);
    }
    TRY(train_momentum_open(&d->momentum, options->momentum, mean, s->state.floats));
    TRY(downpour_parcel_open(&d->parcel, x->size > 1 ? options->wire : NULL, &s->team, residual,
                             s->state.floats, statistics));
    if (downpour_parcel_packs(&d->parcel))
        rules.wiring = &d->parcel.wiring;
    if (x->rank == 0) {
        train_attackers_say(&s->attackers, &s->team.view);
        train_aggregation_say(&d->aggregation, x->size - (options->apart && x->size > 1));
        TRY(downpour_manager_open(&s->team, &d->ledger, &rules, downpour_solo_floats(s), statistics,
                                  &d->manager));
    } else {
        downpour_line_open(&d->line, &s->team);
    }
    if (rules.adds)
        TRY(downpour_open_centre(s));
    if (x->size > 1)
        TRY(comm_engine_begin(coll_group(x->coll)));
    d->begins = true;
    d->solo.split = options->split;
    d->solo.alpha = options->alpha;
    TRY(downpour_solo_open(&d->solo, s, rules.adds));
out:
    return st;
}

static void downpour_close(struct train_session *s)
{
    struct downpour *d = s->strategy_state;

    if (s->team.group != NULL) /* first: until then the engine may write to what goes */
        base_ignore(comm_engine_end(s->team.group)); /* says what ended the group: known */
    if (d->manager != NULL)
        d->parcel.pulled += downpour_manager_sent(d->manager);
    downpour_manager_close(d->manager);
    train_aggregation_fini(&d->aggregation);
    comm_region_close(d->region);
    base_free(d->fetched);
    base_free(d->change);
    downpour_parcel_close(&d->parcel);
    d->region = NULL;
    d->fetched = d->change = NULL;
    downpour_solo_close(&d->solo);
    d->manager = NULL;
}

static void downpour_fini(void *state)
{
    struct downpour *d = state;

    downpour_ledger_fini(&d->ledger);
    downpour_solo_fini(&d->solo);
    downpour_parcel_fini(&d->parcel);
    train_momentum_fini(&d->momentum);
}

/* Rank 0 saves the mean of all workers' extras in place of its own: of residuals from where its
 * gradients were. */
static base_status downpour_saving(struct train_session *s)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    const struct downpour_parcel *p = &d->parcel;
    float *mean = s->team.exchange.mine + TRAIN_HEAD;
    float **changes = train_state_extra(&s->state, TRAIN_MOMENTUM);

    d->changes = changes != NULL ? *changes : NULL;
    if (changes != NULL)
        TRY(train_momentum_saving(&d->momentum, &s->team, downpour_computes(s), changes));
    if (p->residual == NULL)
        goto out;
    memcpy(mean, p->residual, p->floats * sizeof *mean);
    if (train_team_leads(&s->team)) /* it is of the mean of all */
        coll_scale(p->floats, (float)s->team.exchange.size, mean);
    TRY(train_residual_mean(&s->team, mean, p->floats));
    if (train_team_leads(&s->team))
        *train_state_extra(&s->state, TRAIN_RESIDUAL) = mean;
out:
    return st;
}

static void downpour_saved(struct train_session *s)
{
    const struct downpour *d = s->strategy_state;

    if (d->changes != NULL)
        *train_state_extra(&s->state, TRAIN_MOMENTUM) = d->changes;
    if (d->parcel.residual != NULL)
        *train_state_extra(&s->state, TRAIN_RESIDUAL) = d->parcel.residual;
}

static const char *const *downpour_extras(const void *options)
{
    static const char *const both[] = {TRAIN_MOMENTUM, TRAIN_RESIDUAL, NULL};
    static const char *const momentum[] = {TRAIN_MOMENTUM, NULL};
    const struct downpour_options *o = options;
    bool lossy = train_wire_is_lossy(o->wire);

    if (o->momentum > 0)
        return lossy ? both : momentum;
    return lossy ? both + 1 : NULL;
}

static base_status downpour_check_options(const void *options)
{
    return train_wire_check(((const struct downpour_options *)options)->wire);
}

static bool downpour_own_data(const void *options)
{
    return ((const struct downpour_options *)options)->split == DOWNPOUR_SPLIT_LOCAL;
}

static unsigned downpour_roles(const struct train_session *s, int rank)
{
    const struct downpour_options *options = s->options;
    unsigned works = options->apart && s->team.exchange.size > 1 ? 0 : CLUSTER_ROLE_WORKER;

    return rank == 0 ? CLUSTER_ROLE_MANAGER | works : CLUSTER_ROLE_WORKER;
}

/* The manager's; the other workers have counted their bytes alone. */
static json_t *downpour_figures(const struct train_session *s)
{
    const struct downpour *d = s->strategy_state;
    struct downpour_ledger_counts c = {0};
    json_t *ages = json_array();
    int64_t pulled = d->parcel.pulled;

    if (d->manager != NULL) {
        c = downpour_manager_counts(d->manager);
        pulled += downpour_manager_sent(d->manager);
    }
    for (int i = 0; i < DOWNPOUR_LEDGER_AGES; i++)
        json_array_append_new(ages, json_integer(c.late_by_age[i]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:f}", "rounds",
                     (json_int_t)c.rounds, "results", (json_int_t)c.results, "reissued",
                     (json_int_t)c.reissued, "refused", (json_int_t)c.refused, "surplus",
                     (json_int_t)c.surplus, "late_results", (json_int_t)c.late, "left_out",
                     (json_int_t)c.left_out, "late_by_age", ages, "bytes_pushed",
                     (json_int_t)d->parcel.pushed, "bytes_pulled", (json_int_t)pulled,
                     "most_split_seconds", d->split_seconds);
}

/* Weights to every worker and their changes back, once a round. */
static void downpour_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct downpour_options *options = q->options;
    double n = q->seat.workers, steps = fmax(1, q->steps);

    if (options->push_every > 0)
        steps = fmin(steps, (double)options->push_every);
    cost->sent = 2 * (n - 1) * q->sizes->weights / steps;
    cost->moved = 2 * cost->sent;
    cost->work = options->apart && n > 1 ? n / (n - 1) : 1;
    cost->exact = false;
}

static base_status downpour_leg(struct train_session *s, int64_t goal)
{
    base_status st = BASE_OK;
    struct downpour *d = s->strategy_state;
    struct train_clock before = s->clock;
    struct train_answer answer = {0};

    if (goal == s->state.position.step) /* an epoch that waits to be judged */
        return BASE_OK;
    TRY(downpour_round_begin(s, goal));
    if (downpour_computes(s))
        TRY(downpour_work(s, &answer));
    TRY(downpour_round_end(s, &answer));
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

#define AT(field) offsetof(struct downpour_options, field)

/* clang-format off */
static const struct base_option table[] = {
    {.name = "split", .argument = "HOW", .kind = BASE_ENUM, .offset = AT(split),
     .names = train_split_names, .help = "how samples are dealt to blocks"},
    {.name = "alpha", .argument = "X", .kind = BASE_REAL, .offset = AT(alpha), .min = 0.01,
     .max = 1e6, .help = "of split=dirichlet: the less, the more uneven are classes and blocks"},
    {.name = "push-every", .argument = "K", .kind = BASE_INT, .offset = AT(push_every), .max = 1e9,
     .help = "steps after which a worker's change is added, at once; 0: one update a round"},
    {.name = "fetch-every", .argument = "K", .kind = BASE_INT, .offset = AT(fetch_every),
     .max = 1e9, .help = "steps after which it gets the weights; 0: as often as it pushes"},
    {.name = "quorum", .argument = "X", .kind = BASE_REAL, .offset = AT(quorum), .min = 0.01,
     .max = 1, .help = "share of the blocks that ends a round; others count in a later one"},
    {.name = "grace", .argument = "S", .kind = BASE_REAL, .offset = AT(grace), .max = 1e6,
     .help = "seconds that the others have once the quorum is there"},
    {.name = "momentum", .argument = "X", .kind = BASE_REAL, .offset = AT(momentum), .max = 0.999,
     .help = "workers send running means of their changes, of which X stays from round to round"},
    {.name = "latency", .argument = "S", .kind = BASE_REAL, .offset = AT(latency), .max = 10,
     .help = "for studies: every message to and from the manager takes so much longer"},
    {.name = "wire", .argument = "NAME[/O=V]", .kind = BASE_TEXT, .offset = AT(wire),
     .registry = train_wire_registry, .help = "format in which the changes of weights travel"},
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
    .options_size = sizeof(struct downpour_options),
    .defaults = &(const struct downpour_options){.alpha = 0.33, .quorum = 1},
    .examples = (const char *const[]){"split=equal", "split=dirichlet,momentum=0.5,wire=int4",
                                      "apart,wire=int8", "quorum=0.6,grace=0.05",
                                      "push-every=2,fetch-every=3,wire=topk/share=0.2", NULL},
    .check = downpour_check_options,
    .extras = downpour_extras,
    .own_extras = true,
    .saving = downpour_saving,
    .saved = downpour_saved,
    .own_data = downpour_own_data,
    .memory = downpour_memory,
    .cost = downpour_cost,
    .roles = downpour_roles,
    .figures = downpour_figures,
    .state_size = sizeof(struct downpour),
    .fini = downpour_fini,
    .open = downpour_open,
    .close = downpour_close,
    .leg = downpour_leg,
};
