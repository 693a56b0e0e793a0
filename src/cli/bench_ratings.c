/* SPDX-License-Identifier: MIT
 *
 * Reads ratings, divides them, fits one model in this process and scores it on the test part: all
 * of its sweeps, each timed.
 */
#include "cli/bench_ratings.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/ratings_info.h"
#include "cli/ratings_pictures.h"
#include "nn/threads.h"
#include "recsys/kernels/kernels.h"
#include "recsys/model.h"
#include "recsys/rank.h"
#include "recsys/split.h"
#include "train/measure.h"
#include "train/pace.h"

struct bench {
    int threads;
    struct recsys_ratings *ratings;
    struct recsys_division parts;
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
    double load_seconds, setup_seconds;
};

static base_status bench_init(struct bench *t, const struct cli_bench_ratings *b)
{
    base_status st = BASE_OK;
    struct recsys_setup setup = {.seed = (uint64_t)b->seed};
    double began = base_now();
    char *path = NULL;

    *t = (struct bench){.threads = nn_threads_set(b->threads)};
    TRY(recsys_model_find(b->model, &setup.model, &t->options));
    TRY(recsys_ratings_path(b->data, &path));
    TRY(recsys_ratings_open(path, &(struct recsys_options){.threads = t->threads}, &t->ratings));
    recsys_warn(t->ratings);
    TRY(recsys_divide(t->ratings,
                      &(struct recsys_divide){.split = b->split,
                                              .seed = (uint64_t)b->seed,
                                              .threads = t->threads,
                                              .by_item = setup.model->by_item,
                                              .times = setup.model->times},
                      &t->parts));
    t->load_seconds = base_now() - began;
    began = base_now();
    TRY(base_team_new(t->threads, &t->team));
    setup.options = t->options;
    setup.scale = &t->ratings->scale;
    setup.by_user = &t->parts.by_user;
    setup.by_item = &t->parts.by_item;
    setup.team = t->team;
    TRY(recsys_fit_new(&setup, &t->fit));
    t->setup_seconds = base_now() - began;
out:
    base_free(path);
    return st;
}

static void bench_fini(struct bench *t)
{
    recsys_fit_free(t->fit);
    base_free(t->options);
    base_team_free(t->team);
    recsys_division_fini(&t->parts);
    recsys_ratings_close(t->ratings);
}

static base_status fit(struct bench *t, struct train_pace *pace)
{
    base_status st = BASE_OK;

    for (int64_t s = 0; s < t->fit->sweeps; s++) {
        const double began = base_now();

        TRY(recsys_sweep(t->fit));
        train_pace_add(pace, base_now() - began, (int64_t)t->parts.by_user.count);
    }
out:
    return st;
}

/* What --lists and --pictures ask for: more figures for the test's object, more lines, pictures. */
static base_status judge(const struct bench *t, const struct cli_bench_ratings *b, json_t *test,
                         struct base_str *lines)
{
    base_status st = BASE_OK;
    struct recsys_quality quality;

    if (b->lists == 0 && b->pictures == NULL)
        return BASE_OK;
    TRY(recsys_quality(t->fit, &t->parts.by_user, &t->parts.test,
                       b->lists > 0 ? (uint32_t)b->lists : 10, RECSYS_USUAL_LEAST, NAN, &quality));
    json_object_update_new(test, recsys_quality_json(t->fit, &quality));
    recsys_quality_text(t->fit, &quality, lines);
    if (b->pictures != NULL)
        TRY(cli_ratings_pictures(t->fit, &t->parts.test, &quality, b->pictures));
out:
    return st;
}

enum { SYRK_ROUNDS = 200, SYRK_CALLS = 200 }; /* a round is shorter than a turn of the scheduler */

/* Operations a second of one thread in the kernel that sums a row's equations, the best of some
 * rounds; 0: the model has no factors. */
static base_status measure_syrk(int k, double *rate_p)
{
    base_status st = BASE_OK;
    const struct recsys_kernels *kernels = recsys_kernels();
    const int n = recsys_panel(k);
    float *panel = NULL, *triangle = NULL;

    *rate_p = 0;
    if (k == 0)
        return BASE_OK;
    TRY(base_tensor((size_t)n * (size_t)k, sizeof *panel, "a panel", &panel));
    TRY(base_tensor(recsys_triangle_floats(k), sizeof *triangle, "a triangle", &triangle));
    for (int round = 0; round < SYRK_ROUNDS; round++) {
        const double began = base_now();

        for (int i = 0; i < SYRK_CALLS; i++)
            kernels->syrk(k, panel, n, triangle, NULL);
        *rate_p = fmax(*rate_p, (double)k * (k + 1) * n * SYRK_CALLS / (base_now() - began));
    }
out:
    base_free(panel);
    base_free(triangle);
    return st;
}

static base_status report(const struct bench *t, const struct cli_bench_ratings *b,
                          const struct train_pace_summary *p)
{
    base_status st = BASE_OK;
    struct recsys_score score = {0};
    double mae, rmse, syrk;
    const double rate = (double)t->parts.by_user.count / p->median;
    json_t *json = NULL, *test = NULL;
    struct base_str lines = {0};

    TRY(recsys_score(t->fit, &t->parts.test, 0, t->parts.test.rows, &score));
    mae = score.absolute / score.count;
    rmse = sqrt(score.squared / score.count);
    if (!isfinite(rmse))
        TRY(base_fail(BASE_ERR_DIVERGED, "%s diverged: its guesses are not numbers", b->model));
    test = json_pack("{s:f, s:f}", "mae", mae, "rmse", rmse);
    TRY(judge(t, b, test, &lines));
    TRY(measure_syrk((int)t->fit->traits.period, &syrk));
    json = json_pack(
        "{s:i, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:{s:f, s:f}, s:f, s:O, s:I, s:f, s:f}", "schema",
        1, "model", b->model, "threads", t->threads, "train", (json_int_t)t->parts.by_user.count,
        "tests", (json_int_t)t->parts.test.count, "sweeps", (json_int_t)t->fit->sweeps,
        "load_seconds", t->load_seconds, "setup_seconds", t->setup_seconds, "seconds", "median",
        p->median, "min", p->min, "updates_per_second", rate, "test", test, "peak_memory_bytes",
        (json_int_t)base_peak_memory(), "peak_flops", train_measure_peak(t->threads), "syrk_flops",
        syrk);
    if (b->json)
        TRY(base_json_print(json));
    else
        printf("%s, %llu ratings, %d threads: %lld sweeps, median %.4f s, best %.4f s; %.1f M "
               "ratings/s; test RMSE %.4f, MAE %.4f\n%s",
               b->model, (unsigned long long)t->parts.by_user.count, t->threads,
               (long long)t->fit->sweeps, p->median, p->min, rate / 1e6, rmse, mae,
               lines.length > 0 ? lines.text : "");
out:
    json_decref(json);
    json_decref(test);
    base_str_fini(&lines);
    return st;
}

base_status cli_bench_ratings(const struct cli_bench_ratings *b)
{
    base_status st = BASE_OK;
    struct bench t = {0};
    struct train_pace pace = {0};
    struct train_pace_summary summary;

    TRY(bench_init(&t, b));
    TRY(train_pace_init(&pace, t.fit->sweeps));
    TRY(fit(&t, &pace));
    summary = train_pace_summary(&pace);
    if (t.fit->sweeps == 1) /* there is no other than the first */
        summary.median = summary.min = summary.first;
    TRY(report(&t, b, &summary));
out:
    train_pace_fini(&pace);
    bench_fini(&t);
    return st;
}
