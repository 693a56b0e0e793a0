/* SPDX-License-Identifier: MIT */
#include "train/strategy.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "train/aggregator.h"
#include "train/attack.h"
#include "train/defence.h"
#include "train/session.h"
#include "train/touched.h"

base_status train_strategy_find(const char *text, const struct train_strategy **strategy_p,
                                void **options_p)
{
    base_status st = BASE_OK;
    const struct train_strategy *strategy = NULL;
    char *name = base_strndup(text, strcspn(text, ":"));

    *strategy_p = NULL;
    *options_p = NULL;
    TRY(base_registry_find("strategy", name, train_strategy_registry, train_strategy_count,
                           &strategy));
    TRY(base_options_parse(strategy->options, "strategy", name, strategy->defaults,
                           strategy->options_size, text, options_p));
    if (strategy->check != NULL)
        TRY(base_prefix(strategy->check(*options_p), "strategy %s", name));
    *strategy_p = strategy;
out:
    if (st != BASE_OK) {
        base_free(*options_p);
        *options_p = NULL;
    }
    base_free(name);
    return st;
}

int train_strategy_workers(const struct train_strategy *strategy, const void *options, int size)
{
    return strategy->first_worker != NULL ? size - strategy->first_worker(options, size) : size;
}

struct data_share train_strategy_share(const struct train_session *s)
{
    int size = s->team.exchange.size, rank = s->team.exchange.rank;
    int workers = train_strategy_workers(s->strategy, s->options, size), first = size - workers;
    uint32_t place = rank > first ? (uint32_t)(rank - first) : 0;

    return first == 0 && s->strategy->shares != TRAIN_SHARES_ROUNDS
               ? train_team_share(&s->team)
               : (struct data_share){place, place + 1, (uint32_t)workers};
}

char *train_strategy_text(const struct train_strategy *strategy, const void *options)
{
    struct base_str text = {0};
    struct base_option row;
    bool first = true;

    base_str_add(&text, "%s", strategy->name);
    for (size_t i = 0; base_option_at(strategy->options, i, &row); i++) {
        char *value = base_option_text(&row, options),
             *usual = base_option_text(&row, strategy->defaults);

        if (value != NULL && (usual == NULL || strcmp(value, usual) != 0)) {
            base_str_add(&text, "%c%s=%s", first ? ':' : ',', row.name, value);
            first = false;
        }
        base_free(value);
        base_free(usual);
    }
    return base_str_take(&text);
}

unsigned train_strategy_roles(const struct train_session *s, int rank)
{
    return s->strategy->roles != NULL ? s->strategy->roles(s, rank) : CLUSTER_ROLE_WORKER;
}

void train_strategy_place(const struct train_strategy *strategy,
                          const struct train_placing *placing, int rank, struct train_holds *wanted)
{
    *wanted = (struct train_holds){0};
    if (strategy->place != NULL)
        strategy->place(placing, rank, wanted);
    for (uint32_t group = 0; group < TRAIN_GROUPS; group++)
        if (strategy->place == NULL || group == TRAIN_STATISTICS)
            wanted->at[wanted->count++] =
                (struct train_hold){.group = group, .count = placing->floats[group]};
}

struct train_lends train_strategy_lends(const struct train_strategy *strategy, const void *options)
{
    const struct train_lends *lends = strategy->lends != NULL ? strategy->lends(options) : NULL;

    return lends != NULL ? *lends : (struct train_lends){0};
}

/* A job's workers must agree before any of them knows the model, so this goes by their number
 * alone; where the choice does not fit into memory, the refusal names what does
 * (train/memory_check.c). */
struct train_choice train_strategy_auto(const struct train_task *task, const char *model,
                                        bool several)
{
    if (task->choose != NULL)
        return task->choose(model, several);
    if (!several)
        return (struct train_choice){"single", "one worker has nothing to combine"};
    return (struct train_choice){"ddp", "steps are those of one worker; gradients travel while "
                                        "backward goes on, or lie in shared memory"};
}

base_status train_strategy_serves(const struct train_strategy *strategy, int workers)
{
    if (!strategy->alone || workers == 1)
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE,
                     "strategy %s is for one worker, but there are %d; `paceline strategies` lists "
                     "the others",
                     strategy->name, workers);
}

bool train_strategy_fits(const struct train_strategy *strategy, const struct train_task *task)
{
    return strategy->sweeps == (task->sweeps != NULL);
}

base_status train_strategy_trains(const struct train_strategy *strategy,
                                  const struct train_task *task)
{
    base_status st = BASE_OK;
    struct base_str names = {0};

    if (train_strategy_fits(strategy, task))
        return BASE_OK;
    for (size_t i = 0; i < train_strategy_count; i++)
        if (train_strategy_fits(train_strategy_registry[i], task))
            base_str_add(&names, "%s%s", names.length > 0 ? ", " : "",
                         train_strategy_registry[i]->name);
    st = base_fail(BASE_ERR_USAGE, "strategy %s does not serve %s; these do: %s", strategy->name,
                   task->help, names.text);
    base_str_fini(&names);
    return st;
}

base_status train_strategy_aggregates(const struct train_strategy *strategy, const char *aggregate)
{
    base_status st = BASE_OK;
    struct train_aggregation aggregation = {0};

    if (aggregate == NULL)
        return BASE_OK;
    TRY(train_aggregation_find(aggregate, &aggregation));
    if (!strategy->aggregates)
        st = base_fail(BASE_ERR_USAGE,
                       "strategy %s has one way to combine, and no use for --aggregate %s",
                       strategy->name, aggregate);
out:
    train_aggregation_fini(&aggregation);
    return st;
}

/* Without a manager workers attack by what each of them has; with one, no worker owns a slice. */
static base_status attack_fits(const struct train_strategy *strategy, const struct train_job *job,
                               const struct train_attack *a)
{
    if (strategy->sum == NULL &&
        (a->lie != NULL || a->breaks_promises || a->misleads || a->accuses))
        return base_fail(BASE_ERR_USAGE,
                         "--attack %s is for workers without a manager, as those of ddp with "
                         "--aggregate; strategy %s has one",
                         a->name, strategy->name);
    if (strategy->sum == NULL || train_attack_is_own(a, train_defence_wanted(job)))
        return BASE_OK;
    if (a->forge != NULL)
        return base_fail(BASE_ERR_USAGE,
                         "--attack %s knows what all honest workers send, which under strategy %s "
                         "no worker does; measure it under downpour",
                         a->name, strategy->name);
    return base_fail(BASE_ERR_USAGE,
                     "--attack %s is for workers that aggregate: with strategy %s add --aggregate "
                     "and a rule",
                     a->name, strategy->name);
}

base_status train_strategy_attacked(const struct train_strategy *strategy,
                                    const struct train_job *job)
{
    base_status st = BASE_OK;
    struct train_attackers attackers = {0};

    if (job->attack == NULL)
        return BASE_OK;
    TRY(train_attackers_parse(job->attack, 0, &attackers));
    if (!strategy->aggregates)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--attack measures what --aggregate stands, of which strategy %s has no use",
                      strategy->name));
    for (int i = 0; i < attackers.count; i++)
        TRY(attack_fits(strategy, job, attackers.of[i].attack));
    if (!job->yes_attack)
        TRY(base_fail(BASE_ERR_USAGE,
                      "--attack spoils this run and its model on purpose; if that is what you "
                      "want, add --yes-attack"));
out:
    train_attackers_fini(&attackers);
    return st;
}

base_status train_exchange_head(struct train_exchange *x)
{
    base_status st = BASE_OK;
    enum train_category was = train_clock_enter(x->clock, TRAIN_WAIT);

    TRY(coll_all_reduce(x->coll, x->mine, TRAIN_HEAD, NULL));
    train_clock_enter(x->clock, was);
    x->ranges[0] = (struct train_range){0, TRAIN_HEAD, x->mine};
    x->range_count = 1;
out:
    return st;
}

size_t train_exchange_rows(const struct train_exchange *x)
{
    return x->touched != NULL ? x->touched->floats : 0;
}

base_status train_exchange_sum_rows(struct train_exchange *x)
{
    base_status st = BASE_OK;

    if (x->touched == NULL)
        return BASE_OK;
    TRY(train_touched_sum(x->touched, x));
    x->ranges[x->range_count++] =
        (struct train_range){TRAIN_HEAD, x->touched->floats, x->mine + TRAIN_HEAD};
out:
    return st;
}

base_status train_exchange_sum(struct train_exchange *x, const struct coll_sum *sum)
{
    base_status st = BASE_OK;
    const size_t from = TRAIN_HEAD + train_exchange_rows(x);
    enum train_category was;
    float *result;

    TRY(train_exchange_head(x));
    was = train_clock_enter(x->clock, TRAIN_COMMUNICATE);
    TRY(coll_space_all_reduce(x->coll, x->space, from, x->floats - from, sum, &result));
    x->ranges[x->range_count++] = (struct train_range){from, x->floats - from, result};
    TRY(train_exchange_sum_rows(x));
    train_clock_enter(x->clock, was);
out:
    return st;
}

/* Pieces of a batch take the place of --accumulate. */
base_status train_strategy_shares(const struct train_strategy *strategy, const char *shares,
                                  int workers)
{
    base_status st = BASE_OK;
    struct base_str names = {0};
    struct train_shares_plan plan = {0};
    int least = TRAIN_SHARES_NOTHING; /* what it divides is more than this */

    TRY(train_shares_plan_parse(shares, &plan));
    for (int i = 0; i < plan.count; i++)
        TRY(train_shares_entry_fits(&plan.at[i], workers));
    if (plan.count > 0)
        least = TRAIN_SHARES_ROUNDS;
    else if (!train_shares_follow_speed(shares))
        goto out;
    if ((int)strategy->shares > least || strategy->alone)
        goto out;
    for (size_t i = 0; i < train_strategy_count; i++)
        if ((int)train_strategy_registry[i]->shares > least)
            base_str_add(&names, "%s%s", names.length > 0 ? ", " : "",
                         train_strategy_registry[i]->name);
    st = base_fail(BASE_ERR_USAGE, "strategy %s does not follow --shares %.20s; these do: %s",
                   strategy->name, shares, names.text);
out:
    train_shares_plan_fini(&plan);
    base_str_fini(&names);
    return st;
}

/* Of strategies with stages. */
static base_status stages_suit(const struct train_strategy *strategy, const void *options,
                               const struct train_job *job)
{
    const char *name = strategy->name;

    if (job->accumulate > 1)
        return base_fail(BASE_ERR_USAGE,
                         "strategy %s cuts every batch itself; in place of --accumulate %" PRId64
                         " give it microbatches=%" PRId64,
                         name, job->accumulate, job->accumulate);
    if (job->sync_bn && strategy->stages->pieces(options) > 1)
        return base_fail(BASE_ERR_USAGE,
                         "--sync-bn normalises whole batches, but strategy %s cuts them into "
                         "pieces; give it microbatches=1, or leave out --sync-bn",
                         name);
    if (job->record.count > 0)
        return base_fail(BASE_ERR_USAGE,
                         "--record needs all layers on a worker, which strategy %s divides", name);
    return BASE_OK;
}

base_status train_strategy_suits(const struct train_strategy *strategy, const void *options,
                                 const void *first, const struct train_job *job)
{
    base_status st = BASE_OK;

    if (strategy->stages != NULL)
        TRY(stages_suit(strategy, options, job));
    if (strategy->suits != NULL)
        TRY(strategy->suits(options, first, job));
out:
    return st;
}
