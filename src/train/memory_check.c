/* SPDX-License-Identifier: MIT
 *
 * Does a training fit into its host? Every host answers for itself: the machine's memory or that of
 * its control group is for all workers there together, --memory for each of them. Where the answer
 * is no, the same arithmetic finds out what would fit: other settings, other strategies.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "train/defence.h"
#include "train/memory.h"
#include "train/session.h"

enum { TOLD = 4, MOST_PIECES = 4096 }; /* parts that a refusal names; the largest --accumulate */

/* A way to run the job: as it is, or with something changed. */
struct variant {
    const struct train_strategy *strategy;
    const void *options;
    struct train_seat seat; /* rank: the lowest of this host, or the one that is asked about */
    int64_t batch, accumulate;
};

struct need {
    double host;                /* bytes of all its workers */
    double worker;              /* of the one that needs most … */
    struct train_memory memory; /* … and its parts */
    int samples;                /* at a time */
};

static int lowest_of_host(const struct train_team *team)
{
    const struct comm_member *members = team->view.members;
    int rank = 0;

    while (team->worker != NULL && members[rank].host != members[team->exchange.rank].host)
        rank++;
    return rank;
}

static struct variant as_it_is(const struct train_session *s)
{
    const struct train_exchange *x = &s->team.exchange;

    return (struct variant){
        .strategy = s->strategy,
        .options = s->options,
        .seat = {.workers = x->size,
                 .rank = lowest_of_host(&s->team),
                 .locals = train_team_neighbours(&s->team),
                 .shares = x->coll != NULL && coll_locals(x->coll) > 1},
        .batch = s->plan.batch,
        .accumulate = s->job->accumulate,
    };
}

static void ask(const struct train_session *s, const struct variant *v,
                const struct train_sizes *sizes, struct train_memory *memory_p)
{
    const struct train_memory_question question = {
        .sizes = sizes,
        .options = v->options,
        .seat = v->seat,
        .clips = s->job->clip > 0,
        .defends = train_defence_wanted(s->job),
        .accumulates = v->accumulate > 1,
        .saves = s->job->checkpoint,
        .program = s->before.program,
        .data = s->before.data,
        .files = s->before.files,
    };

    train_memory_count(v->strategy, &question, memory_p);
}

void train_memory_sizes(const struct train_session *s, const struct train_strategy *strategy,
                        const void *options, int workers, int64_t batch, int64_t accumulate,
                        struct train_sizes *sizes_p)
{
    const struct train_stages *stages = strategy->stages;
    int sharers = stages != NULL ? 1 : train_strategy_workers(strategy, options, workers);
    int64_t pieces = stages != NULL ? stages->pieces(options) : accumulate;

    *sizes_p = (struct train_sizes){.activations = INFINITY};
    if (s->task->sizes(s, sharers, batch, pieces, sizes_p) != BASE_OK)
        sizes_p->activations = INFINITY;
}

static void size_up(const struct train_session *s, const struct variant *v,
                    struct train_sizes *sizes_p)
{
    train_memory_sizes(s, v->strategy, v->options, v->seat.workers, v->batch, v->accumulate,
                       sizes_p);
}

static struct need need_of(const struct train_session *s, struct variant v)
{
    struct train_sizes sizes;
    struct need need = {0};
    int first = v.seat.rank;

    size_up(s, &v, &sizes);
    need.samples = sizes.samples;
    for (int i = 0; i < v.seat.locals; i++) {
        struct train_memory memory;
        double part;

        v.seat.rank = first + i;
        ask(s, &v, &sizes, &memory);
        part = train_memory_part(&memory, v.seat.locals);
        need.host += part;
        if (part > need.worker) {
            need.worker = part;
            need.memory = memory;
        }
    }
    return need;
}

static bool suffices(const struct train_session *s, const struct need *need)
{
    return need->host <= (double)base_memory_limit() &&
           (s->job->memory == 0 || need->worker <= (double)s->job->memory);
}

static bool fits(const struct train_session *s, const struct variant *v)
{
    struct need need = need_of(s, *v);

    return suffices(s, &need);
}

bool train_memory_suffices(const struct train_session *s, const void *options)
{
    struct variant v = as_it_is(s);

    v.options = options;
    return fits(s, &v);
}

void train_memory_choose(const struct train_session *s, const struct train_strategy *strategy,
                         void *options)
{
    struct variant v = as_it_is(s);
    struct train_sizes sizes;
    int64_t least = 1;

    v.strategy = strategy;
    v.options = options;
    if (strategy->stages == NULL)
        return;
    size_up(s, &v, &sizes);
    if (sizes.graph == NULL) /* the model is larger than can be counted */
        return;
    while (strategy->stages->choose(options, sizes.graph, v.seat.workers,
                                    train_session_whole(s, v.batch), least) &&
           !fits(s, &v))
        least = 2 * strategy->stages->pieces(options);
}

/* ---- what would fit ---- */

/* A way that fits is about to be added to the others. */
static struct base_str *next_way(struct base_str *ways)
{
    base_str_add(ways, "%s", ways->length > 0 ? ", or " : "");
    return ways;
}

/* The fewest pieces, among the doubled ones, that fit; a batch-norm over all workers, and what is
 * computed in one step, take whole shares only; stages have pieces of their own. */
static void try_pieces(const struct train_session *s, struct base_str *ways)
{
    struct variant v = as_it_is(s);
    bool whole = s->job->sync_bn || s->closed || s->strategy->stages != NULL;
    int64_t most = whole ? 0 : MOST_PIECES;

    for (v.accumulate *= 2; v.accumulate <= most && v.accumulate <= v.batch; v.accumulate *= 2)
        if (fits(s, &v)) {
            base_str_add(next_way(ways), "--accumulate %" PRId64, v.accumulate);
            return;
        }
}

static int computing(const struct variant *v)
{
    return train_strategy_workers(v->strategy, v->options, v->seat.workers);
}

/* Halves what the person has given: --batch, or --batch-per-worker. */
static void try_batch(const struct train_session *s, struct base_str *ways)
{
    struct variant v = as_it_is(s);
    bool each = s->job->batch_per_worker > 0;
    int64_t given = each ? s->job->batch_per_worker : s->plan.batch;

    for (given /= 2; given >= v.accumulate && given > 0; given /= 2) {
        v.batch = each ? given * computing(&v) : given;
        if (fits(s, &v)) {
            base_str_add(next_way(ways), "%s %" PRId64, each ? "--batch-per-worker" : "--batch",
                         given);
            return;
        }
    }
}

/* The more of them are left on this host, the better. */
static void try_workers(const struct train_session *s, struct base_str *ways)
{
    struct variant v = as_it_is(s);

    while (v.seat.locals > 1 && v.seat.workers > v.strategy->least) {
        v.seat.locals--;
        v.seat.workers--;
        if (s->job->batch_per_worker > 0)
            v.batch = s->job->batch_per_worker * computing(&v);
        if (fits(s, &v)) {
            base_str_add(next_way(ways), "--workers %d on this host", v.seat.locals);
            return;
        }
    }
}

static bool try_strategy(const struct train_session *s, const char *text, struct base_str *ways)
{
    struct variant v = as_it_is(s);
    const struct train_strategy *strategy;
    void *options = NULL;
    bool serves = train_strategy_find(text, &strategy, &options) == BASE_OK &&
                  train_strategy_serves(strategy, v.seat.workers) == BASE_OK &&
                  train_strategy_trains(strategy, s->task) == BASE_OK &&
                  train_strategy_suits(strategy, options, options, s->job) == BASE_OK &&
                  !strategy->alone && !(s->closed && strategy->stages != NULL);

    v.strategy = strategy;
    v.options = options;
    if (serves)
        train_memory_choose(s, strategy, options);
    serves = serves && fits(s, &v);
    if (serves)
        base_str_add(next_way(ways), "--strategy %s", text);
    base_free(options);
    return serves;
}

/* The first of the registry that fits: as it is by default, or with options of its examples. */
static void try_strategies(const struct train_session *s, struct base_str *ways)
{
    bool found = s->team.exchange.size == 1;

    for (size_t i = 0; i < train_strategy_count && !found; i++) {
        const struct train_strategy *strategy = train_strategy_registry[i];

        found = strategy != s->strategy && try_strategy(s, strategy->name, ways);
        for (size_t j = 0; !found && strategy->examples != NULL && strategy->examples[j] != NULL;
             j++) {
            char *text = base_format("%s:%s", strategy->name, strategy->examples[j]);

            found = try_strategy(s, text, ways);
            base_free(text);
        }
    }
}

/* ---- the answer ---- */

/* "this host", or its number where there are several. */
static void name_host(const struct train_session *s, char text[32])
{
    const struct comm_view *view = &s->team.view;
    bool several = false;

    for (uint32_t i = 1; s->team.worker != NULL && i < view->size; i++)
        several |= view->members[i].host != view->members[0].host;
    if (several)
        snprintf(text, 32, "host %u", view->members[s->team.exchange.rank].host);
    else
        snprintf(text, 32, "this host");
}

/* "vgg11 needs 3.2 GB on this host (2 workers; 64 samples at a time; each 1.6 GB: …), which has 2
 * GB" */
static void tell_need(const struct train_session *s, const struct need *need, struct base_str *text)
{
    int locals = train_team_neighbours(&s->team);
    char host[32];

    name_host(s, host);
    base_str_add(text, "%s with %d sample%s at a time needs ", s->job->model, need->samples,
                 base_plural(need->samples));
    if (s->job->memory > 0 && need->worker > (double)s->job->memory)
        base_str_add(text, "%sB a worker on %s (", base_scaled(need->worker).text, host);
    else if (locals > 1)
        base_str_add(text, "%sB on %s for %d workers (the largest: ", base_scaled(need->host).text,
                     host, locals);
    else
        base_str_add(text, "%sB on %s (", base_scaled(need->host).text, host);
    train_memory_text(&need->memory, locals, TOLD, text);
    if (s->job->memory > 0 && need->worker > (double)s->job->memory)
        base_str_add(text, "), --memory gives it %sB", base_scaled((double)s->job->memory).text);
    else
        base_str_add(text, "), which has %sB", base_scaled((double)base_memory_limit()).text);
}

static base_status refuse(const struct train_session *s, const struct need *need)
{
    struct base_str text = {0}, ways = {0};
    base_status st;

    tell_need(s, need, &text);
    try_pieces(s, &ways);
    try_batch(s, &ways);
    try_workers(s, &ways);
    try_strategies(s, &ways);
    if (ways.length > 0)
        base_str_add(&text, ". What would fit: %s", ways.text);
    else
        base_str_add(&text, "; no smaller batch, number of workers or strategy known here fits");
    st = base_fail(BASE_ERR_MEMORY, "%s", text.text);
    base_str_fini(&text);
    base_str_fini(&ways);
    return st;
}

void train_memory_estimate(struct train_session *s)
{
    struct variant mine = as_it_is(s);
    struct train_sizes sizes;

    size_up(s, &mine, &sizes);
    mine.seat.rank = s->team.exchange.rank;
    ask(s, &mine, &sizes, &s->memory);
}

base_status train_memory_check(struct train_session *s)
{
    struct need need = need_of(s, as_it_is(s));

    train_memory_estimate(s);
    return suffices(s, &need) ? BASE_OK : refuse(s, &need);
}

void train_memory_warn(struct train_session *s)
{
    struct need need = need_of(s, as_it_is(s));
    struct base_str text = {0};

    if (suffices(s, &need))
        return;
    tell_need(s, &need, &text);
    base_warn("%s; it goes on all the same", text.text);
    base_str_fini(&text);
}
