/* SPDX-License-Identifier: MIT */
#include "train/eval_ratings.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/about.h"
#include "nn/threads.h"
#include "recsys/quality.h"
#include "recsys/rank.h"
#include "recsys/saved.h"
#include "recsys/split.h"
#include "train/rated.h"

struct evaluation {
    struct model_about about;
    struct train_job job; /* the settings of the training */
    struct recsys_saved *saved;
    struct recsys_ratings *set;
    struct recsys_division parts;
    const char *data;
    bool own; /* it is the set that the model was trained on */
    int threads;
    struct recsys_score score;
    double seconds;
};

static base_status open_model(struct evaluation *e, const struct store_checkpoint *checkpoint)
{
    base_status st = BASE_OK;

    TRY(base_prefix(model_about_from_json(checkpoint->manifest, &e->about), "%s/manifest.json",
                    checkpoint->path));
    e->job = train_job_defaults;
    TRY(base_prefix(base_options_from_json(train_job_options, e->about.settings, &e->job),
                    "%s/manifest.json", checkpoint->path));
    TRY(recsys_saved_open(checkpoint, e->threads, &e->saved));
out:
    return st;
}

static base_status open_data(struct evaluation *e, const struct train_eval *eval)
{
    base_status st = BASE_OK;
    const struct recsys_options options = {.columns = e->job.rating_columns,
                                           .separator = e->job.separator,
                                           .threads = e->threads,
                                           .added = e->job.add.at,
                                           .added_count =
                                               eval->data == NULL ? e->job.add.count : 0};
    const struct recsys_model *model = e->saved->fit->model;
    struct recsys_divide how = {.split = "none",
                                .seed = (uint64_t)e->job.seed,
                                .threads = e->threads,
                                .times = model->times};
    char *path = NULL, index[BASE_SHA256_HEX];
    bool *excluded = NULL;

    e->data = eval->data != NULL ? eval->data : model_about_place(&e->about);
    TRY(recsys_ratings_path(e->data, &path));
    TRY(recsys_ratings_open(path, &options, &e->set));
    recsys_warn(e->set);
    e->own = strcmp(e->set->digest, e->about.digest) == 0;
    if (e->own && (e->set->users != e->saved->fit->users || e->set->items != e->saved->fit->items))
        TRY(base_fail(BASE_ERR_DATA, "the model has %u users and %u items, and %s has others",
                      e->saved->fit->users, e->saved->fit->items, e->data));
    if (e->own) {
        how.split = e->job.split != NULL ? e->job.split : "0.2";
        how.validation = model->batches ? 0 : e->job.validation;
        TRY(train_rated_excluded(e->set, &e->job, index, &excluded));
        how.excluded = excluded;
    }
    TRY(recsys_divide(e->set, &how, &e->parts));
out:
    base_free(excluded);
    base_free(path);
    return st;
}

/* Ratings of another set, by ids. */
static void score_others(struct evaluation *e, const struct recsys_rows *rows)
{
    const struct recsys_fit *fit = e->saved->fit;
    uint32_t *users = recsys_ids_match(&e->set->user_ids, &e->saved->users);
    uint32_t *items = recsys_ids_match(&e->set->item_ids, &e->saved->items);

    for (uint32_t u = 0; u < rows->rows; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            const struct recsys_guess guess = recsys_predict(
                fit, users[u], items[rows->column[k]], rows->time != NULL ? rows->time[k] : 0);
            const double truth =
                fit->model->implicit ? 1 : (double)recsys_value(&e->set->scale, rows, k);

            e->score.count++;
            e->score.absolute += fabs((double)guess.value - truth);
            e->score.squared += ((double)guess.value - truth) * ((double)guess.value - truth);
        }
    base_free(users);
    base_free(items);
}

static base_status score(struct evaluation *e, const struct train_eval *eval)
{
    base_status st = BASE_OK;
    const bool test = e->own && strcmp(eval->part, "test") == 0;
    const struct recsys_rows *rows = test ? &e->parts.test : &e->parts.by_user;
    const double began = base_now();

    if (rows->count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no %s ratings", e->data, eval->part));
    if (e->own)
        TRY(recsys_score(e->saved->fit, rows, 0, rows->rows, &e->score));
    else
        score_others(e, rows);
    e->seconds = base_now() - began;
out:
    return st;
}

/* What is asked for besides the errors: more figures for the part's object, more lines, pictures.
 */
static base_status judge(const struct evaluation *e, const struct train_eval *eval, json_t *part,
                         struct base_str *text)
{
    base_status st = BASE_OK;
    const struct recsys_rows *test = &e->parts.test;
    struct recsys_quality quality;

    if (eval->lists == 0 && eval->pictures == NULL)
        return BASE_OK;
    if (!e->own || strcmp(eval->part, "test") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "lists and pictures are of the tests of the ratings that the "
                                      "model was trained on"));
    TRY(recsys_quality(e->saved->fit, &e->parts.by_user, test,
                       eval->lists > 0 ? (uint32_t)eval->lists : 10, RECSYS_USUAL_LEAST, NAN,
                       &quality));
    json_object_update_new(part, recsys_quality_json(e->saved->fit, &quality));
    recsys_quality_text(e->saved->fit, &quality, text);
    if (eval->pictures != NULL)
        TRY(eval->draw(e->saved->fit, test, &quality, eval->pictures));
out:
    return st;
}

base_status train_eval_ratings(const struct train_eval *eval,
                               const struct store_checkpoint *checkpoint, json_t **result_p,
                               char **text_p)
{
    base_status st = BASE_OK;
    struct evaluation e = {.threads = nn_threads_set((int)eval->threads)};
    struct base_str text = {0};
    json_t *part = NULL;
    double mae, rmse;

    TRY(open_model(&e, checkpoint));
    TRY(open_data(&e, eval));
    TRY(score(&e, eval));
    mae = e.score.absolute / e.score.count;
    rmse = sqrt(e.score.squared / e.score.count);
    base_str_add(&text, "%s on %s (%s): RMSE %.4f, MAE %.4f of %.0f ratings\n", checkpoint->path,
                 e.data, e.own ? eval->part : "all", rmse, mae, e.score.count);
    part = json_pack("{s:o, s:o, s:o, s:I}", "loss", base_json_number(rmse * rmse), "mae",
                     base_json_number(mae), "rmse", base_json_number(rmse), "samples",
                     (json_int_t)e.score.count);
    TRY(judge(&e, eval, part, &text));
    *text_p = base_str_take(&text);
    *result_p = json_pack(
        "{s:i, s:s, s:s, s:i, s:I, s:f, s:O, s:I, s:s}", "schema", 1, "model", e.saved->model,
        "data", e.data, "threads", e.threads, "steps", (json_int_t)checkpoint->step,
        "samples_per_second", e.score.count / fmax(1e-9, e.seconds), eval->part, part,
        "peak_memory_bytes", (json_int_t)base_peak_memory(), "run", checkpoint->path);
out:
    json_decref(part);
    base_str_fini(&text);
    recsys_division_fini(&e.parts);
    recsys_ratings_close(e.set);
    recsys_saved_close(e.saved);
    model_about_fini(&e.about);
    return st;
}
