/* SPDX-License-Identifier: MIT
 *
 * A lab's plots: means over seeds with their deviations, given to report/svg.h. Bars have a row for
 * each case and, where the file has them, what others measured beside it. Lines go over an
 * option's values, over epochs, or over the steps of a case's first run. A scatter has a dot for
 * each case, one figure over another.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "lab/summary.h"
#include "report/story.h"

enum { PAGE_WIDTH = 640 }; /* of a picture in the page, two side by side */

/* The values of a picture: room for every series to have a value of every point or epoch. */
struct picture {
    struct report_series *series;
    double **x, **y, **error;
    size_t count, room; /* series; values of each */
    bool any;           /* some value is there */
};

static void picture_init(struct picture *p, size_t room)
{
    *p = (struct picture){.room = room};
}

static void picture_fini(struct picture *p)
{
    for (size_t i = 0; i < p->count; i++) {
        base_free(p->x[i]);
        base_free(p->y[i]);
        base_free(p->error[i]);
    }
    base_free(p->x);
    base_free(p->y);
    base_free(p->error);
    base_free(p->series);
}

/* The index of the series of this name, which is made if it is not there. */
static size_t series_of(struct picture *p, const char *name)
{
    size_t i = 0;

    while (i < p->count && strcmp(p->series[i].name, name) != 0)
        i++;
    if (i < p->count)
        return i;
    p->series = base_realloc(p->series, i + 1, sizeof *p->series);
    p->x = base_realloc(p->x, i + 1, sizeof *p->x);
    p->y = base_realloc(p->y, i + 1, sizeof *p->y);
    p->error = base_realloc(p->error, i + 1, sizeof *p->error);
    p->x[i] = base_calloc(p->room + 1, sizeof **p->x);
    p->y[i] = base_calloc(p->room + 1, sizeof **p->y);
    p->error[i] = base_calloc(p->room + 1, sizeof **p->error);
    p->series[i] =
        (struct report_series){.name = name, .x = p->x[i], .y = p->y[i], .error = p->error[i]};
    p->count++;
    return i;
}

/* Adds a value to a series, in the order of x. */
static void add_value(struct picture *p, size_t series, double x, double y, double error)
{
    size_t at = p->series[series].count++;

    for (; at > 0 && p->x[series][at - 1] > x; at--) {
        p->x[series][at] = p->x[series][at - 1];
        p->y[series][at] = p->y[series][at - 1];
        p->error[series][at] = p->error[series][at - 1];
    }
    p->x[series][at] = x;
    p->y[series][at] = y;
    p->error[series][at] = error;
    p->any |= isfinite(y);
}

struct drawing {
    const struct lab *lab;
    const struct lab_results *results;
    const struct lab_plot *plot;
    double scale;          /* from values to what is shown */
    char *y_title, *title; /* of the figure; of the plot */
    bool bare;             /* inside a page */
};

/* Is the point in this plot? */
static bool is_shown(const struct drawing *d, const struct lab_point *point)
{
    bool named = d->plot->only == NULL;

    for (size_t i = 0; i < json_array_size(d->plot->only); i++)
        named |= strstr(point->name, json_string_value(json_array_get(d->plot->only, i))) != NULL;
    return named && point->selected;
}

char *lab_plot_title(const struct lab *lab, const struct lab_plot *plot)
{
    char *y_title, *title;

    if (plot->title != NULL)
        return base_strdup(plot->title);
    y_title = lab_figure_title(plot->y);
    title = plot->kind == LAB_BARS ? base_format("%s: %s", lab->name, y_title)
                                   : base_format("%s: %s by %s", lab->name, y_title, plot->x);
    base_free(y_title);
    return title;
}

static bool draw_bars(const struct drawing *d, struct base_str *svg)
{
    const struct lab *lab = d->lab;
    const char **rows = base_calloc(lab->point_count + 1, sizeof *rows);
    size_t row_count = 0;
    struct picture p;
    bool theirs = false, any = false;

    picture_init(&p, lab->point_count);
    for (size_t i = 0; i < lab->point_count; i++)
        theirs |= is_shown(d, &lab->points[i]) && !isnan(lab_theirs(&lab->points[i], d->plot->y));
    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];
        struct lab_statistics s;

        if (!is_shown(d, point))
            continue;
        s = lab_point_figure(lab, d->results, d->plot->y, point);
        any |= s.count > 0; /* what others have is no picture by itself */
        add_value(&p, series_of(&p, "ours"), (double)row_count, d->scale * s.mean,
                  d->scale * s.deviation);
        if (theirs)
            add_value(&p, series_of(&p, "theirs"), (double)row_count,
                      d->scale * lab_theirs(point, d->plot->y), 0);
        rows[row_count++] = point->name;
    }
    for (size_t i = 0; i < p.count; i++)
        p.series[i].x = NULL;
    report_svg_bars(&(struct report_chart){.title = d->title,
                                           .bare = d->bare,
                                           .width = d->bare ? PAGE_WIDTH : 0,
                                           .y_title = d->y_title,
                                           .series = p.series,
                                           .series_count = p.count,
                                           .rows = rows,
                                           .row_count = row_count},
                    svg);
    picture_fini(&p);
    base_free(rows);
    return any;
}

/* After an epoch, over the seeds. */
static struct lab_statistics at_epoch(const struct drawing *d, const struct lab_point *point,
                                      int epoch)
{
    double values[LAB_MAX_SEEDS];
    size_t seeds = lab_seeds_of(d->lab, point);

    for (size_t i = 0; i < seeds; i++) {
        const json_t *record = lab_results_get(d->results, point, d->lab->seeds[i]);

        values[i] = record != NULL ? lab_figure_at_epoch(d->plot->y, record, epoch) : (double)NAN;
    }
    return lab_statistics(values, seeds);
}

/* Of the longest run. */
static int most_epochs(const struct drawing *d)
{
    size_t most = 0;

    for (size_t i = 0; i < d->lab->point_count; i++)
        for (size_t s = 0; s < d->lab->seed_count; s++) {
            const json_t *record =
                lab_results_get(d->results, &d->lab->points[i], d->lab->seeds[s]);
            size_t count = json_array_size(json_object_get(record, "epochs"));

            most = count > most ? count : most;
        }
    return (int)most;
}

/* An option of a point as a number: 3 of 3 and of "3". */
static double option_number(const struct lab_point *point, const char *name)
{
    const json_t *value = json_object_get(point->options, name);
    char *text, *end = NULL;
    double number;

    if (value == NULL)
        return strcmp(name, "workers") == 0 ? 1 : (double)NAN;
    text = lab_value_text(value);
    number = strtod(text, &end);
    if (end == text || *end != '\0')
        number = NAN;
    base_free(text);
    return number;
}

/* "local-sgd" of a series by strategy; points without the option are of their cases. base_free. */
static char *series_name(const struct drawing *d, const struct lab_point *point)
{
    const json_t *value =
        d->plot->series != NULL ? json_object_get(point->options, d->plot->series) : NULL;
    char *text, *name;

    if (d->plot->series == NULL)
        return base_strdup(strcmp(d->plot->x, "epoch") == 0 || strcmp(d->plot->x, "step") == 0
                               ? point->name
                               : point->group);
    if (value == NULL)
        return base_strdup(point->group);
    text = lab_value_text(value);
    name = json_is_string(value) ? base_strdup(text) : base_format("%s=%s", d->plot->series, text);
    base_free(text);
    return name;
}

/* The folder of the run that was made with the point's first seed; NULL: it is not done. base_free.
 */
static char *first_run(const struct drawing *d, const struct lab_point *point)
{
    const json_t *record = lab_results_get(d->results, point, d->lab->seeds[0]);
    const char *run = json_string_value(json_object_get(json_object_get(record, "result"), "run"));
    const char *slash = run != NULL ? strrchr(run, '/') : NULL;

    return run == NULL
               ? NULL
               : base_format("%s/runs/%s", d->results->folder, slash != NULL ? slash + 1 : run);
}

/* Nothing where the run's folder is gone. */
static void add_steps(const struct drawing *d, const struct lab_point *point, size_t series,
                      struct picture *p)
{
    char *folder = first_run(d, point), *name = base_format("step.%s", d->plot->y);
    struct report_story *story = base_calloc(1, sizeof *story);
    const struct report_curve *curve;

    if (folder != NULL)
        report_story_read(folder, story);
    curve = report_story_curve(story, name);
    for (size_t i = 0; curve != NULL && i < curve->count; i++) {
        const struct report_bin *bin = &curve->bins[i];
        double count = (double)bin->count;

        add_value(p, series, bin->x / count, d->scale * bin->y / count, 0);
    }
    report_story_fini(story);
    base_free(story);
    base_free(name);
    base_free(folder);
}

static void add_point(const struct drawing *d, const struct lab_point *point, size_t series,
                      int epochs, struct picture *p)
{
    struct lab_statistics s;
    double x = option_number(point, d->plot->x);

    for (int epoch = 1; epoch <= epochs; epoch++) {
        s = at_epoch(d, point, epoch);
        add_value(p, series, epoch, d->scale * s.mean, d->scale * s.deviation);
    }
    if (epochs == 0 && isfinite(x)) {
        s = lab_point_figure(d->lab, d->results, d->plot->y, point);
        add_value(p, series, x, d->scale * s.mean, d->scale * s.deviation);
    }
}

static bool draw_lines(const struct drawing *d, struct base_str *svg)
{
    const struct lab *lab = d->lab;
    char **names = base_calloc(lab->point_count + 1, sizeof *names);
    bool steps = strcmp(d->plot->x, "step") == 0;
    int epochs = strcmp(d->plot->x, "epoch") == 0 ? most_epochs(d) : 0;
    struct picture p;

    picture_init(&p,
                 steps ? REPORT_CURVE_BINS : lab->point_count * (size_t)(epochs > 1 ? epochs : 1));
    for (size_t i = 0; i < lab->point_count; i++)
        if (is_shown(d, &lab->points[i])) {
            names[i] = series_name(d, &lab->points[i]);
            if (steps)
                add_steps(d, &lab->points[i], series_of(&p, names[i]), &p);
            else
                add_point(d, &lab->points[i], series_of(&p, names[i]), epochs, &p);
        }
    report_svg_lines(&(struct report_chart){.title = d->title,
                                            .bare = d->bare,
                                            .width = d->bare ? PAGE_WIDTH : 0,
                                            .x_title = d->plot->x,
                                            .y_title = d->y_title,
                                            .log_x = d->plot->log_x,
                                            .log_y = d->plot->log_y,
                                            .series = p.series,
                                            .series_count = p.count},
                     svg);
    picture_fini(&p);
    for (size_t i = 0; i < lab->point_count; i++)
        base_free(names[i]);
    base_free(names);
    return p.any;
}

static bool draw_scatter(const struct drawing *d, struct base_str *svg)
{
    const struct lab *lab = d->lab;
    char *x_title = lab_figure_title(d->plot->x);
    double scale = lab_figure_scale(d->plot->x);
    struct picture p;

    picture_init(&p, lab->point_count);
    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];
        struct lab_statistics x, y;

        if (!is_shown(d, point))
            continue;
        x = lab_point_figure(lab, d->results, d->plot->x, point);
        y = lab_point_figure(lab, d->results, d->plot->y, point);
        if (isfinite(
                x.mean)) /* e.g. a case that sends nothing, on a logarithmic axis, has no dot */
            add_value(&p, series_of(&p, point->name), scale * x.mean, d->scale * y.mean,
                      d->scale * y.deviation);
    }
    report_svg_scatter(&(struct report_chart){.title = d->title,
                                              .bare = d->bare,
                                              .width = d->bare ? PAGE_WIDTH : 0,
                                              .x_title = x_title,
                                              .y_title = d->y_title,
                                              .log_x = d->plot->log_x,
                                              .log_y = d->plot->log_y,
                                              .series = p.series,
                                              .series_count = p.count},
                       svg);
    picture_fini(&p);
    base_free(x_title);
    return p.any;
}

bool lab_plot_svg(const struct lab *lab, const struct lab_results *results,
                  const struct lab_plot *plot, bool bare, struct base_str *svg)
{
    char *y_title = lab_figure_title(plot->y), *title = lab_plot_title(lab, plot);
    struct drawing d = {lab, results, plot, lab_figure_scale(plot->y), y_title, title, bare};
    bool any = plot->kind == LAB_BARS    ? draw_bars(&d, svg)
               : plot->kind == LAB_LINES ? draw_lines(&d, svg)
                                         : draw_scatter(&d, svg);

    base_free(title);
    base_free(y_title);
    return any;
}

static base_status draw_plot(const struct lab *lab, const struct lab_results *results,
                             const struct lab_plot *plot, json_t *paths)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/%s.svg", results->folder, plot->name);
    struct base_str svg = {0};

    if (lab_plot_svg(lab, results, plot, false, &svg)) {
        TRY(base_file_replace(path, svg.text, svg.length));
        json_array_append_new(paths, base_json_text(path));
    }
out:
    base_str_fini(&svg);
    base_free(path);
    return st;
}

base_status lab_draw(const struct lab *lab, const struct lab_results *results, json_t **paths_p)
{
    base_status st = BASE_OK;

    *paths_p = json_array();
    for (size_t i = 0; i < lab->plot_count; i++)
        TRY(draw_plot(lab, results, &lab->plots[i], *paths_p));
out:
    return st;
}
