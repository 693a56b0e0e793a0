/* SPDX-License-Identifier: MIT */
#include "train/rated.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "recsys/saved.h"

void train_rated_close(struct train_rated *r)
{
    recsys_division_fini(&r->parts);
    recsys_ratings_close(r->set);
    base_team_free(r->team);
    free(r->path);
    *r = (struct train_rated){0};
}

base_status train_rated_open(struct train_rated *r, const struct train_job *job, int threads)
{
    base_status st = BASE_OK;
    const struct recsys_options options = {.columns = job->rating_columns,
                                           .separator = job->separator,
                                           .threads = threads,
                                           .strict = job->strict};
    char *path = NULL;

    TRY(recsys_ratings_path(job->data, &path));
    TRY(recsys_ratings_open(path, &options, &r->set));
    r->path = realpath(path, NULL);
    TRY(recsys_divide(r->set, job->split != NULL ? job->split : "0.2", (uint64_t)job->seed, threads,
                      &r->parts));
    if (r->parts.by_user.count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s has %llu ratings; up to %u can be trained on", job->data,
                      (unsigned long long)r->parts.by_user.count, UINT32_MAX));
    TRY(base_team_new(threads, &r->team));
out:
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
