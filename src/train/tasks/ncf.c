/* SPDX-License-Identifier: MIT
 *
 * A rating model that is trained by batches, as a network on pairs of users and items
 * (recsys/pairs.h): all of its steps and scores are those of tasks/network.c, its data and the
 * rest of its files those of rating models, so that eval, recommend and serve know no difference.
 *
 * Of the embeddings a step changes the rows that its ratings are of, and no others (session->lazy).
 */

#include "recsys/ncf.h"
#include "base/cpu_level.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/table.h"
#include "recsys/pairs.h"
#include "recsys/saved.h"
#include "train/rated.h"
#include "train/tally.h"
#include "train/tasks/network/network.h"

struct ncf {
    struct network network; /* comes first: to tasks/network.c it is the work */
    struct train_rated data;
    char *text; /* of the model, with its options */
    void *options;
    struct recsys_fit *fit; /* without memory: says what the network is */
};

static bool ncf_takes(const char *text)
{
    const struct recsys_model *model = train_rated_model(text);

    return model != NULL && model->batches;
}

/* ---- data and model ---- */

static base_status ncf_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ncf *n = s->work;
    const struct data_options options = {.validation = s->job->validation,
                                         .seed = (uint64_t)s->job->seed};
    struct data_set *set = NULL;

    TRY(train_rated_open(&n->data, s->job, s->threads));
    TRY(recsys_pairs_open(s->job->data, n->data.set, &n->data.parts, &options, &set));
    TRY(train_samples_adopt(&n->network.samples, s->job, set));
    network_opened(s);
    s->digest = n->data.set->digest;
    s->excluded = n->data.excluded;
    s->data_path = n->data.path;
out:
    return st;
}

static void ncf_discard(struct train_session *s)
{
    struct ncf *n = s->work;

    network_discard(s);
    recsys_fit_free(n->fit);
    base_free(n->options);
    base_free(n->text);
    n->fit = NULL;
    n->options = n->text = NULL;
}

static void ncf_close(struct train_session *s)
{
    struct ncf *n = s->work;

    ncf_discard(s);
    train_samples_close(&n->network.samples);
    train_rated_close(&n->data);
}

static base_status ncf_describe(struct train_session *s, const char *text)
{
    base_status st = BASE_OK;
    struct ncf *n = s->work;
    const struct data_column *target = &n->network.info->table->target;
    char *network = NULL;

    n->text = base_strdup(text != NULL ? text : s->job->model);
    TRY(train_rated_fit(&n->data, s->job, n->text, &n->options, &n->fit));
    recsys_ncf_scale(n->fit, target->mean, target->deviation);
    network = recsys_ncf_text(n->fit);
    TRY(network_describe(s, network));
    s->lazy = true;
out:
    base_free(network);
    return st;
}

static const char *ncf_text(const struct train_session *s)
{
    return ((const struct ncf *)s->work)->text;
}

/* ---- scores ---- */

static const struct train_grade *ncf_grade(const struct train_session *s)
{
    static const struct train_grade grade = {
        .key = "rmse", .title = "RMSE", .scale = 1, .decimals = 4, .unit = ""};

    (void)s;
    return &grade;
}

static double ncf_graded(const struct train_session *s, const double *score)
{
    struct train_tally tally;
    double rmse;

    train_tally_unpack(&tally, ((const struct network *)s->work)->info, score);
    rmse = train_errors_rmse(&tally.errors, tally.info->table->target.deviation);
    train_tally_fini(&tally);
    return rmse;
}

static json_t *ncf_score_json(const struct train_session *s, const double *score)
{
    const struct data_info *info = ((const struct network *)s->work)->info;
    const double rmse = ncf_graded(s, score);
    struct train_tally tally;

    train_tally_unpack(&tally, info, score);
    return json_pack(
        "{s:o, s:o, s:o, s:I}", "loss", base_json_number(rmse * rmse), "mae",
        base_json_number(train_errors_mae(&tally.errors, info->table->target.deviation)), "rmse",
        base_json_number(rmse), "samples", (json_int_t)tally.errors.count);
}

static void ncf_score_text(const struct train_session *s, const double *score,
                           struct base_str *text)
{
    const struct data_info *info = ((const struct network *)s->work)->info;
    struct train_tally tally;

    train_tally_unpack(&tally, info, score);
    base_str_add(text, "RMSE %.4f, MAE %.4f (%llu ratings)\n", ncf_graded(s, score),
                 train_errors_mae(&tally.errors, info->table->target.deviation),
                 (unsigned long long)tally.errors.count);
}

/* ---- files ---- */

static base_status ncf_write(struct train_session *s, const struct model_carrier *carrier,
                             struct store_save *save)
{
    const struct ncf *n = s->work;
    base_status st = train_state_write(&s->state, carrier, save);

    return st == BASE_OK ? recsys_saved_write_rated(n->fit, n->data.set, save) : st;
}

static base_status ncf_read(struct train_session *s, const struct model_carrier *carrier,
                            const struct store_checkpoint *checkpoint)
{
    return train_state_load(&s->state, carrier, checkpoint);
}

/* ---- what is told ---- */

static void ncf_about(const struct train_session *s, json_t *settings, struct model_about *about_p)
{
    const struct ncf *n = s->work;

    train_rated_about(&n->data, s->job, n->fit, n->text, settings, about_p);
}

static void ncf_announce(const struct train_session *s)
{
    const struct ncf *n = s->work;

    recsys_warn(n->data.set);
    base_info("%s: %llu parameters, %sFLOP a rating; %s: %u users, %u items, %u ratings for "
              "training, %u for tests",
              n->text, (unsigned long long)s->state.parameters,
              base_scaled(nn_graph_flops(n->network.graph)).text, s->job->data, n->data.set->users,
              n->data.set->items, s->count[DATA_TRAIN], s->count[DATA_TEST]);
    base_info("run %s, %d thread%s, %s kernels", s->run.path, s->threads, base_plural(s->threads),
              base_cpu_level_name(base_cpu_level()));
}

/* Chosen on a validation part (docs/recommender.md). */
static const struct train_preference ncf_prefers[] = {{"optimiser", "adam"},
                                                      {"lr", "0.002"},
                                                      {"batch", "256"},
                                                      {"epochs", "8"},
                                                      {"weight-decay", "0.002"},
                                                      {"schedule", "cosine"},
                                                      {0}};

const struct train_task train_task_ncf = {
    .name = "ncf",
    .help = "the neural recommender",
    .size = sizeof(struct ncf),
    .uses = TRAIN_USE_STEPS | TRAIN_USE_RATINGS,
    .prefers = ncf_prefers,
    .takes = ncf_takes,
    .open = ncf_open,
    .close = ncf_close,
    .describe = ncf_describe,
    .discard = ncf_discard,
    .text = ncf_text,
    .sizes = network_sizes,
    .start = network_start,
    .tune = network_tune,
    .fit = network_fit,
    .order = network_order,
    .take = network_take,
    .next = network_next,
    .compute = network_compute,
    .undo = network_undo,
    .unite = network_unite,
    .score_count = network_score_count,
    .score = network_score,
    .score_text = ncf_score_text,
    .score_json = ncf_score_json,
    .grade = ncf_grade,
    .graded = ncf_graded,
    .write = ncf_write,
    .read = ncf_read,
    .about = ncf_about,
    .announce = ncf_announce,
};
