/* SPDX-License-Identifier: MIT */
#include "train/rated.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "data/index.h"
#include "recsys/saved.h"

void train_rated_close(struct train_rated *r)
{
    recsys_division_fini(&r->parts);
    recsys_ratings_close(r->set);
    base_team_free(r->team);
    free(r->path);
    *r = (struct train_rated){0};
}

static bool same_scale(const struct recsys_scale *a, const struct recsys_scale *b)
{
    bool same = a->levels == b->levels && a->lowest == b->lowest && a->highest == b->highest;

    for (uint32_t i = 0; same && i < a->levels; i++)
        same = a->level[i] == b->level[i];
    return same;
}

/* What a call adds must be of use: ratings that are new, on the scale of those that are there. */
static base_status check_added(struct train_rated *r, const struct train_job *job, const char *path,
                               const struct recsys_options *options)
{
    base_status st = BASE_OK;
    const struct recsys_model *model = train_rated_model(job->model);
    struct recsys_options before = *options;
    struct recsys_ratings *former = NULL;
    const char *last = job->add.at[job->add.count - 1];

    if (model->batches)
        TRY(base_fail(BASE_ERR_USAGE, "--add is not for %s; train it anew on all ratings",
                      model->name));
    before.strict = false;
    before.added_count -= job->added;
    TRY(recsys_ratings_open(path, &before, &former));
    if (strcmp(former->digest, r->set->digest) == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s adds nothing: all of its ratings are known", last));
    if (!model->implicit && !same_scale(&former->scale, &r->set->scale))
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is of another scale: the ratings of the run are %u values from %g to %g, "
                      "with it there are %u from %g to %g",
                      last, former->scale.levels, (double)former->scale.lowest,
                      (double)former->scale.highest, r->set->scale.levels,
                      (double)r->set->scale.lowest, (double)r->set->scale.highest));
    memcpy(r->former_digest, former->digest, sizeof r->former_digest);
out:
    recsys_ratings_close(former);
    return st;
}

base_status train_rated_excluded(const struct recsys_ratings *set, const struct train_job *job,
                                 char digest[BASE_SHA256_HEX], bool **excluded_p)
{
    base_status st = BASE_OK;
    struct data_index index = {0};

    *excluded_p = NULL;
    digest[0] = '\0';
    if (job->exclude == NULL)
        goto out;
    TRY(data_index_read(job->exclude, &index));
    TRY(base_prefix(recsys_excluded(set, &index, excluded_p), "%s", job->exclude));
    memcpy(digest, index.digest, sizeof index.digest);
out:
    data_index_fini(&index);
    return st;
}

base_status train_rated_open(struct train_rated *r, const struct train_job *job, int threads)
{
    base_status st = BASE_OK;
    const struct recsys_options options = {.columns = job->rating_columns,
                                           .separator = job->separator,
                                           .threads = threads,
                                           .strict = job->strict,
                                           .added = job->add.at,
                                           .added_count = job->add.count};
    const struct recsys_model *model = train_rated_model(job->model);
    /* Of a network's samples the data set keeps some apart. */
    const double validation = model->batches ? 0 : job->validation;
    struct recsys_divide how = {.split = job->split != NULL ? job->split : "0.2",
                                .validation = validation,
                                .seed = (uint64_t)job->seed,
                                .threads = threads,
                                .by_item = model->by_item,
                                .times = model->times};
    char *path = NULL;
    bool *excluded = NULL;

    TRY(recsys_ratings_path(job->data, &path));
    TRY(recsys_ratings_open(path, &options, &r->set));
    if (job->added > 0)
        TRY(check_added(r, job, path, &options));
    r->path = realpath(path, NULL);
    TRY(train_rated_excluded(r->set, job, r->excluded, &excluded));
    how.excluded = excluded;
    TRY(recsys_divide(r->set, &how, &r->parts));
    if (validation > 0 && (r->parts.validation.count == 0 || r->parts.by_user.count == 0))
        TRY(base_fail(BASE_ERR_DATA, "--validation %g of %s leaves no ratings to %s", validation,
                      job->data, r->parts.by_user.count == 0 ? "train on" : "validate"));
    if (r->parts.by_user.count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s has %llu ratings; up to %u can be trained on", job->data,
                      (unsigned long long)r->parts.by_user.count, UINT32_MAX));
    TRY(base_team_new(threads, &r->team));
    if (r->parts.by_user.count == 0)
        TRY(base_fail(BASE_ERR_DATA, "--exclude %s leaves no ratings of %s to train on",
                      job->exclude, job->data));
out:
    base_free(excluded);
    base_free(path);
    return st;
}

const struct recsys_model *train_rated_model(const char *text)
{
    char *name = base_strndup(text, strcspn(text, ":"));
    const struct recsys_model *model =
        base_registry_get(name, recsys_model_registry, recsys_model_count);

    base_free(name);
    return model;
}

base_status train_rated_fit(const struct train_rated *r, const struct train_job *job,
                            const char *text, void **options_p, struct recsys_fit **fit_p)
{
    base_status st = BASE_OK;
    struct recsys_setup setup = {.scale = &r->set->scale,
                                 .by_user = &r->parts.by_user,
                                 .by_item = &r->parts.by_item,
                                 .seed = (uint64_t)job->seed,
                                 .team = r->team};

    *fit_p = NULL;
    TRY(recsys_model_find(text, &setup.model, options_p));
    setup.options = *options_p;
    TRY(recsys_fit_open(&setup, fit_p));
out:
    return st;
}

void train_rated_about(const struct train_rated *r, const struct train_job *job,
                       const struct recsys_fit *fit, const char *text, json_t *settings,
                       struct model_about *about_p)
{
    model_about_task(
        about_p, "ratings", text, recsys_saved_manifest(fit, text),
        &(struct model_source){
            .name = job->data, .format = r->set->format, .digest = r->set->digest, .path = r->path},
        settings);
}
