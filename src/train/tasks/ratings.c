/* SPDX-License-Identifier: MIT
 *
 * A rating model: src/recsys in the training room. Its buffers, but for the passing ones, lie one
 * after another in the weights of the state, so that entering a view, saving and comparing know
 * nothing of ratings. A step is a sweep over all ratings, in phases whose rows workers divide
 * (train/task.h); every worker has all ratings. Of a model that rotates (recsys/rotation.h),
 * workers may have the rows of their own users alone.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "recsys/rotation.h"
#include "recsys/saved.h"
#include "train/tasks/ratings/ratings.h"

static bool ratings_takes(const char *text)
{
    const struct recsys_model *model = train_rated_model(text);

    return model != NULL && !model->batches;
}

static struct train_choice ratings_choose(const char *text, bool several)
{
    const struct recsys_model *model = text != NULL ? train_rated_model(text) : NULL;

    if (several && model != NULL && model->rotation != NULL)
        return (struct train_choice){"rotate", "workers divide users and their ratings; items "
                                               "travel from worker to worker"};
    return (struct train_choice){"rows", "workers divide the rows of users and items; any number "
                                         "of them gives the same bits"};
}

/* ---- data ---- */

static void ratings_close(struct train_session *s)
{
    train_rated_close(&((struct ratings *)s->work)->data);
}

static base_status ratings_open(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;

    TRY(train_rated_open(&r->data, s->job, s->threads));
    s->count[DATA_TRAIN] = (uint32_t)r->data.parts.by_user.count;
    s->count[DATA_TEST] = (uint32_t)r->data.parts.test.count;
    s->count[DATA_VALIDATION] = (uint32_t)r->data.parts.validation.count;
    s->digest = r->data.set->digest;
    s->excluded = r->data.excluded;
    s->former_digest = r->data.former_digest[0] != '\0' ? r->data.former_digest : NULL;
    s->data_path = r->data.path;
out:
    return st;
}

/* ---- the model ---- */

static void ratings_discard(struct train_session *s)
{
    struct ratings *r = s->work;

    recsys_fit_free(r->fit);
    base_free(r->options);
    base_free(r->text);
    r->fit = NULL;
    r->options = r->text = NULL;
    r->placed = NULL;
    train_state_fini(&s->state);
}

/* The state's tensors are the buffers of the fit. */
static base_status ratings_lay_out(struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    struct train_extent tensors[RECSYS_MAX_BUFFERS];
    size_t count = 0;
    base_status st;

    for (int i = 0; i < fit->buffer_count; i++) {
        const struct recsys_buffer *b = &fit->buffers[i];

        if (!b->passing)
            tensors[count++] = (struct train_extent){b->offset, (size_t)b->rows * b->width};
    }
    st = train_state_describe_tensors(&s->state, tensors, count, fit->floats);
    s->state.compared = fit->early_floats;
    return st;
}

static base_status ratings_describe(struct train_session *s, const char *text)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;

    if (train_session_is_grown(s)) /* with the sizes that it has */
        TRY(recsys_saved_text(s->origin.manifest, &r->text));
    else
        r->text = base_strdup(text != NULL ? text : s->job->model);
    TRY(train_strategy_suits(s->strategy, s->options, s->options, s->job));
    TRY(train_rated_fit(&r->data, s->job, r->text, &r->options, &r->fit));
    if (s->job->patience > 0 && r->fit->sweeps == 1)
        TRY(base_fail(BASE_ERR_USAGE,
                      "%s makes one sweep, so there is nothing for --patience to end early",
                      r->text));
    TRY(train_memory_check(s));
    TRY(ratings_lay_out(s));
out:
    return st;
}

static const char *ratings_text(const struct train_session *s)
{
    return ((const struct ratings *)s->work)->text;
}

/* The users' rows are the first of the state. */
static struct train_stays ratings_stays(const struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    const struct recsys_rotation *rotation = fit->model->rotation;

    if (rotation == NULL)
        return (struct train_stays){0};
    assert(fit->buffers[rotation->users].offset == 0);
    return (struct train_stays){fit->users, fit->buffers[rotation->users].width,
                                fit->by_user->start};
}

static base_status ratings_sizes(const struct train_session *s, int workers, int64_t batch,
                                 int64_t accumulate, struct train_sizes *sizes_p)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    double most = 0;

    (void)batch;
    (void)accumulate;
    for (int i = 0; i < fit->buffer_count; i++)
        most = fmax(most, (double)fit->buffers[i].rows * fit->buffers[i].width);
    *sizes_p = (struct train_sizes){
        .weights = (double)fit->floats * sizeof(float),
        .sweeps = true,
        .early = (double)fit->early_floats * sizeof(float),
        .stays = ratings_stays(s),
        .activations =
            (double)fit->extra +
            (fit->model->rotation != NULL ? fit->model->rotation->bytes(fit, workers) : 0),
        .tensor = most * sizeof(float),
        .samples = 1};
    return BASE_OK;
}

void ratings_users(const struct ratings *r, struct data_share share, uint32_t *first_p,
                   uint32_t *end_p)
{
    const struct recsys_rows *rows = &r->data.parts.by_user;
    const uint32_t total = share.total > 0 ? share.total : 1, to = share.total > 0 ? share.to : 1;

    *first_p = train_rows_begin(rows->start, rows->rows, share.from, total);
    *end_p = train_rows_begin(rows->start, rows->rows, to, total);
}

/* Of a state in parts: this worker's users, and all of the items. */
static void ratings_place_own(struct train_session *s)
{
    const struct ratings *r = s->work;
    uint32_t first, end;

    ratings_users(r, train_team_share(&s->team), &first, &end);
    for (int i = 0; i < r->fit->buffer_count; i++) {
        const struct recsys_buffer *b = &r->fit->buffers[i];
        const uint32_t from = i == r->fit->model->rotation->users ? first : 0;
        const uint32_t held = i == r->fit->model->rotation->users ? end - first : b->rows;

        recsys_fit_place_rows(r->fit, i, from, held,
                              train_state_at(&s->state, TRAIN_WEIGHTS, 0,
                                             b->offset + (size_t)from * b->width,
                                             (size_t)held * b->width));
    }
}

struct recsys_fit *ratings_fit(struct train_session *s)
{
    struct ratings *r = s->work;

    if (s->state.parts[TRAIN_WEIGHTS].count > 0)
        ratings_place_own(s);
    else if (r->placed != s->state.weights)
        recsys_fit_place(r->fit, s->state.weights);
    r->placed = s->state.weights;
    return r->fit;
}

/* What a part of the state has of each buffer; parts begin and end with rows. */
static void ratings_place_part(struct recsys_fit *fit, const struct train_part *part)
{
    for (int i = 0; i < fit->buffer_count; i++) {
        const struct recsys_buffer *b = &fit->buffers[i];
        const size_t all = b->offset + (size_t)b->rows * b->width;
        const size_t begin = part->from > b->offset ? part->from : b->offset;
        const size_t end = part->from + part->count < all ? part->from + part->count : all;
        const bool has = end > begin;

        recsys_fit_place_rows(fit, i, has ? (uint32_t)((begin - b->offset) / b->width) : 0,
                              has ? (uint32_t)((end - begin) / b->width) : 0,
                              has ? part->buffers[0] + (begin - part->from) : NULL);
    }
}

static base_status ratings_start(struct train_session *s)
{
    base_status st = BASE_OK;
    struct ratings *r = s->work;
    const struct train_parts *parts = &s->state.parts[TRAIN_WEIGHTS];

    train_state_clear(&s->state);
    if (parts->count == 0)
        return recsys_fit_start(ratings_fit(s));
    for (size_t i = 0; i < parts->count; i++) {
        ratings_place_part(r->fit, &parts->at[i]);
        TRY(recsys_fit_start(r->fit));
    }
    ratings_fit(s);
out:
    return st;
}

static base_status ratings_tune(struct train_session *s, const char *wished)
{
    (void)wished;
    s->kernels = base_strdup("");
    return BASE_OK;
}

static base_status ratings_make_room(struct train_session *s)
{
    ratings_fit(s);
    return BASE_OK;
}

/* ---- sweeps ---- */

/* A phase that is one unit writes to whatever it likes. */
static bool ratings_divides(const struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    bool all = true;

    for (int i = 0; i < fit->phase_count; i++)
        all &= fit->phases[i].write_count > 0;
    return all;
}

static int ratings_phases(const struct train_session *s)
{
    return ((const struct ratings *)s->work)->fit->phase_count;
}

static base_status ratings_prepare(struct train_session *s, int phase, struct train_phase *phase_p)
{
    struct recsys_fit *fit = ratings_fit(s);
    const struct recsys_phase *p = &fit->phases[phase];

    static_assert((int)TRAIN_MAX_WRITES >= (int)RECSYS_MAX_WRITES);
    *phase_p =
        (struct train_phase){.rows = p->rows, .work = p->work, .write_count = p->write_count};
    for (int i = 0; i < p->write_count; i++) {
        const struct recsys_buffer *b = &fit->buffers[p->writes[i]];

        phase_p->writes[i] = (struct train_rows){b->at, b->width};
    }
    fit->sweep = s->state.position.step - s->state.position.plan_start;
    return recsys_prepare(fit, phase);
}

static void ratings_run(struct train_session *s, int phase, uint32_t from, uint32_t to)
{
    recsys_run(ratings_fit(s), phase, from, to);
}

static base_status ratings_finish(struct train_session *s)
{
    return recsys_finish(ratings_fit(s));
}

static int64_t ratings_sweeps(const struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    const int64_t start = s->state.position.plan_start;

    return start + (start > 0 ? fit->again.to : fit->sweeps);
}

/* A plan that is not at its last part yet goes on as it is. */
static int64_t ratings_restart(const struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;
    const struct train_position *p = &s->state.position;

    return p->step - p->plan_start < fit->again.from ? p->plan_start : p->step - fit->again.from;
}

static bool ratings_settled(const struct train_session *s)
{
    const struct recsys_fit *fit = ((const struct ratings *)s->work)->fit;

    return s->state.position.step - s->state.position.plan_start > fit->settling;
}

/* ---- rotations ---- */

static const struct recsys_rotation *ratings_rotation(const struct train_session *s)
{
    return ((const struct ratings *)s->work)->fit->model->rotation;
}

static base_status ratings_rotate_lay_out(struct train_session *s, uint32_t from, uint32_t to,
                                          uint32_t bundles, uint32_t least)
{
    return ratings_rotation(s)->lay_out(ratings_fit(s),
                                        &(struct recsys_part){from, to, bundles, least});
}

static uint32_t ratings_rotate_count(const struct train_session *s)
{
    return ratings_rotation(s)->count(((const struct ratings *)s->work)->fit);
}

static size_t ratings_rotate_floats(const struct train_session *s)
{
    return ratings_rotation(s)->floats(((const struct ratings *)s->work)->fit);
}

static void ratings_rotate_begin(struct train_session *s, uint32_t from, uint32_t to,
                                 float *bundles)
{
    struct recsys_fit *fit = ratings_fit(s);

    fit->sweep = s->state.position.step - s->state.position.plan_start;
    ratings_rotation(s)->begin(fit, from, to, bundles);
}

static void ratings_rotate_train(struct train_session *s, float *rows, float *bundles,
                                 uint32_t rotation, uint32_t bundle)
{
    ratings_rotation(s)->train(((const struct ratings *)s->work)->fit, rows, bundles, rotation,
                               bundle);
}

static void ratings_rotate_end(const struct train_session *s, uint32_t from, uint32_t to,
                               const float *bundles, float *rest)
{
    ratings_rotation(s)->end(((const struct ratings *)s->work)->fit, from, to, bundles, rest);
}

static const char *ratings_rotating(void)
{
    static char names[128];

    names[0] = 0;
    for (size_t i = 0; i < recsys_model_count; i++)
        if (recsys_model_registry[i]->rotation != NULL)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     names[0] != 0 ? ", " : "", recsys_model_registry[i]->name);
    return names;
}

static base_status ratings_unite(struct train_session *s)
{
    (void)s; /* phases leave nothing that is a worker's own */
    return BASE_OK;
}

/* ---- what is told ---- */

static void ratings_about(const struct train_session *s, json_t *settings,
                          struct model_about *about_p)
{
    const struct ratings *r = s->work;

    train_rated_about(&r->data, s->job, r->fit, r->text, settings, about_p);
}

static void ratings_announce(const struct train_session *s)
{
    const struct ratings *r = s->work;
    char validation[40] = "";

    if (s->count[DATA_VALIDATION] > 0)
        snprintf(validation, sizeof validation, "%u for validation, ", s->count[DATA_VALIDATION]);
    recsys_warn(r->data.set);
    base_info(
        "%s: %llu parameters, %lld sweeps%s%s; %s: %u users, %u items, %u ratings for training, "
        "%s%u for tests",
        r->text, (unsigned long long)s->state.parameters, (long long)r->fit->sweeps,
        r->fit->reason != NULL ? ", " : "", r->fit->reason != NULL ? r->fit->reason : "",
        s->job->data, r->data.set->users, r->data.set->items, s->count[DATA_TRAIN], validation,
        s->count[DATA_TEST]);
    base_info("run %s, %d thread%s", s->run.path, s->threads, base_plural(s->threads));
}

static void ratings_result(const struct train_session *s, json_t *result)
{
    const struct train_pace_summary pace = train_pace_summary(&s->journal.pace);
    const double seconds = pace.median > 0 ? pace.median : pace.first; /* of one sweep */

    json_object_set_new(result, "epoch_seconds", base_json_number(seconds));
    json_object_set_new(result, "updates_per_second",
                        base_json_number(seconds > 0 ? s->count[DATA_TRAIN] / seconds : NAN));
}

static const struct train_rotation ratings_rotates = {.stays = ratings_stays,
                                                      .lay_out = ratings_rotate_lay_out,
                                                      .count = ratings_rotate_count,
                                                      .floats = ratings_rotate_floats,
                                                      .begin = ratings_rotate_begin,
                                                      .train = ratings_rotate_train,
                                                      .end = ratings_rotate_end};

const struct train_task train_task_ratings = {
    .name = "ratings",
    .help = "rating models",
    .size = sizeof(struct ratings),
    .uses = TRAIN_USE_RATINGS,
    .takes = ratings_takes,
    .choose = ratings_choose,
    .open = ratings_open,
    .close = ratings_close,
    .describe = ratings_describe,
    .discard = ratings_discard,
    .text = ratings_text,
    .sizes = ratings_sizes,
    .start = ratings_start,
    .tune = ratings_tune,
    .fit = ratings_make_room,
    .sweeps = &(const struct train_sweeps){.divides = ratings_divides,
                                           .phases = ratings_phases,
                                           .prepare = ratings_prepare,
                                           .run = ratings_run,
                                           .finish = ratings_finish,
                                           .count = ratings_sweeps,
                                           .restart = ratings_restart,
                                           .settled = ratings_settled,
                                           .rotation = &ratings_rotates,
                                           .rotating = ratings_rotating},
    .unite = ratings_unite,
    .score_count = ratings_score_count,
    .score = ratings_score,
    .score_text = ratings_score_text,
    .score_json = ratings_score_json,
    .grade = ratings_grade,
    .graded = ratings_graded,
    .write = ratings_write,
    .read = ratings_read,
    .read_weights = ratings_read_weights,
    .result = ratings_result,
    .about = ratings_about,
    .announce = ratings_announce,
};
