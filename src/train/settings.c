/* SPDX-License-Identifier: MIT */
#include "train/settings.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

/* Options of the job with all settings: the same whichever changes a worker has missed. Texts among
 * them point into `settings`. */
static base_status settle_options(const struct train_strategy *strategy, const json_t *settings,
                                  void *options)
{
    base_status st = BASE_OK;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)settings, name, value)
    {
        struct base_option row;

        if (base_option_find(strategy->options, name, strlen(name), &row) < 0)
            TRY(base_fail(BASE_ERR_USAGE,
                          "strategy %s has no option '%s'; `paceline strategies` lists them",
                          strategy->name, name));
        if (!row.live)
            TRY(base_fail(BASE_ERR_USAGE, "%s of strategy %s cannot change while the job runs",
                          row.name, strategy->name));
        TRY(base_prefix(base_option_set(&row, "", json_string_value(value), options), "strategy %s",
                        strategy->name));
    }
    if (strategy->check != NULL)
        TRY(base_prefix(strategy->check(options), "strategy %s", strategy->name));
out:
    return st;
}

base_status train_settings_check(const json_t *description, const json_t *settings)
{
    base_status st = BASE_OK;
    const struct train_strategy *strategy = NULL;
    struct train_job job;
    void *first = NULL, *options = NULL;

    TRY(train_job_from_json(description, &job));
    TRY(train_strategy_find(train_job_strategy(&job, true), &strategy, &first));
    TRY(train_strategy_find(train_job_strategy(&job, true), &strategy, &options));
    TRY(settle_options(strategy, settings, options));
    TRY(train_strategy_suits(strategy, options, first, &job));
out:
    base_free(first);
    base_free(options);
    return st;
}

bool train_settings_are_news(const struct train_session *s)
{
    return s->team.worker != NULL &&
           cluster_worker_settings(s->team.worker, NULL) > s->settings.number;
}

uint32_t train_settings_heard(const struct train_session *s, json_t **values_p)
{
    *values_p = NULL;
    return s->team.worker != NULL ? cluster_worker_settings(s->team.worker, values_p) : 0;
}

static base_status hold(struct train_session *s, uint32_t number, json_t *values)
{
    base_status st = BASE_OK;
    size_t size = s->strategy->options_size;
    void *options = base_calloc(1, size);

    memcpy(options, s->first_options, size);
    TRY(settle_options(s->strategy, values, options));
    memcpy(s->options, options, size);
    cluster_settings_take(&s->settings, number, values);
out:
    base_free(options);
    return st;
}

base_status train_settings_agree(struct train_session *s)
{
    base_status st = BASE_OK;
    uint32_t numbers[COMM_MAX_WORKERS], newest;
    json_t *heard = NULL, *values;
    bool knows_newer;
    int source = 0;

    if (s->team.worker == NULL)
        return BASE_OK;
    newest = train_settings_heard(s, &heard);
    knows_newer = newest > s->settings.number;
    if (!knows_newer)
        newest = s->settings.number;
    TRY(train_team_gather(&s->team, &newest, sizeof newest, numbers));
    for (int i = 1; i < s->team.exchange.size; i++)
        if (numbers[i] > numbers[source])
            source = i;
    if (numbers[source] == 0)
        goto out;
    values = json_incref(source != s->team.exchange.rank ? NULL
                         : knows_newer                   ? heard
                                                         : s->settings.values);
    st = train_team_tell(&s->team, source, &values);
    if (st == BASE_OK && numbers[source] > s->settings.number) {
        st = cluster_settings_check(values);
        if (st == BASE_OK)
            st = hold(s, numbers[source], values);
    }
    json_decref(values);
out:
    json_decref(heard);
    return st;
}

void train_settings_tell(const struct train_session *s)
{
    if (s->settings.number != 0 && train_team_leads(&s->team))
        cluster_worker_applied(s->team.worker, s->settings.number, s->state.position.step + 1);
}

/* What has become of the options, for people and for the strategy. */
static base_status pass_on(struct train_session *s, const void *former)
{
    struct base_str list = {0};
    char *text = json_dumps(s->settings.values, JSON_COMPACT);
    const char *name;
    json_t *value;

    json_object_foreach(s->settings.values, name, value)
        base_str_add(&list, "%s%s=%s", list.length > 0 ? ", " : "", name, json_string_value(value));
    base_info("%s from step %" PRId64 " on", list.text, s->state.position.step + 1);
    base_event(s->journal.events,
               "{\"event\":\"set\",\"number\":%u,\"step\":%" PRId64 ",\"settings\":%s}",
               s->settings.number, s->state.position.step + 1, text);
    base_str_fini(&list);
    base_free(text);
    train_settings_tell(s);
    return s->strategy->changed != NULL ? s->strategy->changed(s, former) : BASE_OK;
}

static void *copy_options(const struct train_session *s)
{
    void *copy = base_calloc(1, s->strategy->options_size);

    memcpy(copy, s->options, s->strategy->options_size);
    return copy;
}

base_status train_settings_take(struct train_session *s)
{
    base_status st = BASE_OK;
    uint32_t before = s->settings.number;
    void *former = copy_options(s);

    TRY(train_settings_agree(s));
    s->verdict.news = false;
    if (s->settings.number != before)
        TRY(pass_on(s, former));
out:
    base_free(former);
    return st;
}

base_status train_settings_put(struct train_session *s, uint32_t number, json_t *values)
{
    base_status st = BASE_OK;
    void *former = copy_options(s);

    if (number <= s->settings.number)
        goto out;
    TRY(cluster_settings_check(values));
    TRY(hold(s, number, values));
    TRY(pass_on(s, former));
out:
    base_free(former);
    return st;
}
