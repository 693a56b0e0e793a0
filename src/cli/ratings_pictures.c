/* SPDX-License-Identifier: MIT */
#include "cli/ratings_pictures.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/svg.h"

enum { MOST_POINTS = 2000 };

static base_status write_picture(const char *dir, const char *name, struct base_str *svg)
{
    char *path = base_format("%s/%s", dir, name);
    base_status st = base_file_replace(path, svg->text, svg->length);

    if (st == BASE_OK)
        base_info("wrote %s", path);
    base_free(path);
    base_str_fini(svg);
    return st;
}

/* Points of one value would lie on a line: each is moved aside a little, by the golden ratio, so
 * that neighbours are apart. */
static double aside(const struct recsys_quality *q, uint64_t index)
{
    const double apart = q->bins > 1 ? (double)(q->bin[1] - q->bin[0]) : 1;

    return 0.6 * apart * (fmod(0.6180339887498949 * (double)index, 1) - 0.5);
}

static base_status draw_guesses(const struct recsys_fit *fit, const struct recsys_rows *test,
                                const struct recsys_quality *q, const char *dir)
{
    const uint64_t every = (test->count + MOST_POINTS - 1) / MOST_POINTS;
    double *truth = base_calloc(MOST_POINTS, sizeof *truth);
    double *guess = base_calloc(MOST_POINTS, sizeof *guess);
    struct report_series points = {.name = "ratings", .x = truth, .y = guess};
    const struct report_chart chart = {.title = "Guesses beside the truth",
                                       .x_title = "rating that was given",
                                       .y_title = "guess",
                                       .series = &points,
                                       .series_count = 1};
    struct base_str svg = {0};

    for (uint32_t u = 0; u < test->rows; u++)
        for (uint64_t k = test->start[u]; k < test->start[u + 1]; k++)
            if (k % every == 0) {
                const uint32_t time = test->time != NULL ? test->time[k] : 0;

                truth[points.count] =
                    (double)recsys_value(fit->scale, test, k) + aside(q, points.count);
                guess[points.count++] = (double)recsys_predict(fit, u, test->column[k], time).value;
            }
    report_svg_points(&chart, &svg);
    base_free(truth);
    base_free(guess);
    return write_picture(dir, "guesses.svg", &svg);
}

static base_status draw_histogram(const struct recsys_quality *q, const char *dir)
{
    double given[RECSYS_QUALITY_BINS] = {0}, guessed[RECSYS_QUALITY_BINS] = {0};
    char names[RECSYS_QUALITY_BINS][16];
    const char *rows[RECSYS_QUALITY_BINS];
    const struct report_series series[] = {
        {.name = "given", .y = given, .count = (size_t)q->bins},
        {.name = "guessed", .y = guessed, .count = (size_t)q->bins}};
    const struct report_chart chart = {.title = "How often each rating was given and guessed",
                                       .y_title = "test ratings",
                                       .series = series,
                                       .series_count = 2,
                                       .rows = rows,
                                       .row_count = (size_t)q->bins};
    struct base_str svg = {0};

    for (int a = 0; a < q->bins; a++) {
        snprintf(names[a], sizeof names[a], "%.3g", (double)q->bin[a]);
        rows[a] = names[a];
        for (int b = 0; b < q->bins; b++) {
            given[a] += (double)q->confusion[a][b];
            guessed[b] += (double)q->confusion[a][b];
        }
    }
    report_svg_bars(&chart, &svg);
    return write_picture(dir, "histogram.svg", &svg);
}

base_status cli_ratings_pictures(const struct recsys_fit *fit, const struct recsys_rows *test,
                                 const struct recsys_quality *q, const char *dir)
{
    base_status st = BASE_OK;

    if (fit->model->implicit)
        TRY(base_fail(BASE_ERR_USAGE,
                      "the guesses of %s are preferences, not ratings: there is "
                      "nothing to draw beside the truth",
                      fit->model->name));
    TRY(base_make_dirs(dir));
    TRY(draw_guesses(fit, test, q, dir));
    TRY(draw_histogram(q, dir));
out:
    return st;
}
