/* SPDX-License-Identifier: MIT
 *
 * The ratings of a training: read, divided, and those that a call adds to a run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/tasks/ratings/ratings.h"

void ratings_close(struct train_session *s)
{
    struct ratings *r = s->work;

    recsys_division_fini(&r->parts);
    recsys_ratings_close(r->set);
    base_team_free(r->team);
    free(r->path);
}

/* What a call adds must be of use: ratings that are new, on the scale of those that are there. */
static base_status check_added(struct train_session *s, const char *path,
                               const struct recsys_options *options)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;
    const struct train_job *job = s->job;
    struct recsys_options before = *options;
    struct recsys_ratings *former = NULL;
    const char *last = job->add.at[job->add.count - 1];

    before.strict = false;
    before.added_count -= job->added;
    TRY(recsys_ratings_open(path, &before, &former));
    if (strcmp(former->digest, r->set->digest) == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s adds nothing: all of its ratings are known", last));
    if (!ratings_model(job->model)->implicit &&
        memcmp(&former->scale, &r->set->scale, sizeof former->scale) != 0)
        TRY(base_fail(BASE_ERR_DATA,
                      "%s is of another scale: the ratings of the run are %u values from %g to %g, "
                      "with it there are %u from %g to %g",
                      last, former->scale.levels, (double)former->scale.lowest,
                      (double)former->scale.highest, r->set->scale.levels,
                      (double)r->set->scale.lowest, (double)r->set->scale.highest));
    memcpy(r->former_digest, former->digest, sizeof r->former_digest);
    s->former_digest = r->former_digest;
out:
    recsys_ratings_close(former);
    return st;
}

base_status ratings_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;
    const struct train_job *job = s->job;
    const struct recsys_options options = {.columns = job->rating_columns,
                                           .separator = job->separator,
                                           .threads = s->threads,
                                           .strict = job->strict,
                                           .added = job->add.at,
                                           .added_count = job->add.count};
    char *path = NULL;

    TRY(recsys_ratings_path(job->data, &path));
    TRY(recsys_ratings_open(path, &options, &r->set));
    if (job->added > 0)
        TRY(check_added(s, path, &options));
    r->path = realpath(path, NULL);
    TRY(recsys_divide(r->set, job->split != NULL ? job->split : "0.2", (uint64_t)job->seed,
                      s->threads, &r->parts));
    if (r->parts.by_user.count > UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "%s has %llu ratings; up to %u can be trained on", job->data,
                      (unsigned long long)r->parts.by_user.count, UINT32_MAX));
    TRY(base_team_new(s->threads, &r->team));
    s->count[DATA_TRAIN] = (uint32_t)r->parts.by_user.count;
    s->count[DATA_TEST] = (uint32_t)r->parts.test.count;
    s->digest = r->set->digest;
    s->data_path = r->path;
out:
    base_free(path);
    return st;
}
