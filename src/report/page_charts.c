/* SPDX-License-Identifier: MIT
 *
 * The charts of the page: curves of the training, time and state of its workers.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/html.h"

enum { SHOWN_NODES = 8 };

static const struct figure {
    const char *what, *title, *hint;
    bool band;
} figures[] = {
    {"loss", "Loss", "mean; shaded: lowest to highest", true},
    {"accuracy", "Accuracy", "share of samples", false},
    {"rmse", "RMSE", "after each tested sweep or epoch", false},
    {"mae", "MAE", "after each tested sweep or epoch", false},
    {"r2", "R²", "after each tested epoch", false},
    {"lr", "Learning rate", "schedule applied", false},
    {"rate", "Throughput", "samples a second, all workers", false},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* A rate that is 0 all the time tells nothing: models without one have it. */
static bool tells(const struct report_lines *lines)
{
    for (size_t s = 0; s < lines->count; s++)
        for (size_t i = 0; i < lines->series[s].count; i++)
            if (isfinite(lines->series[s].y[i]) && lines->series[s].y[i] != 0)
                return true;
    return false;
}

static void put_chart(struct base_str *html, const struct report_lines *lines, const char *title,
                      const char *x_title, const struct report_mark *marks, size_t mark_count)
{
    report_svg_lines(&(struct report_chart){.title = title,
                                            .x_title = x_title,
                                            .y_title = "",
                                            .series = lines->series,
                                            .series_count = lines->count,
                                            .marks = marks,
                                            .mark_count = mark_count,
                                            .width = HTML_CHART,
                                            .height = HTML_CHART_HEIGHT,
                                            .bare = true},
                     html);
}

/* Where workers were lost or came, and where steps were done again. */
static struct report_mark *marks_of(const struct report_story *s)
{
    struct report_mark *marks = base_calloc(s->turn_count + 1, sizeof *marks);

    for (size_t i = 0; i < s->turn_count; i++)
        marks[i] = (struct report_mark){s->turns[i].step, s->turns[i].text};
    return marks;
}

void page_curves(const struct report_story *s, struct base_str *html)
{
    struct report_mark *marks = marks_of(s);

    for (size_t i = 0; i < FIGURES; i++) {
        struct report_lines lines = {0};
        const struct report_curve *loss = report_story_curve(s, "step.loss");
        bool binned = loss != NULL && loss->per_bin > 1;

        report_lines_add(&lines, s, figures[i].what, REPORT_STEP, NULL, figures[i].band);
        if (tells(&lines)) {
            html_card(html, figures[i].what, figures[i].title,
                      figures[i].band && !binned ? "mean of the batch" : figures[i].hint);
            put_chart(html, &lines, figures[i].title, "step", marks, s->turn_count);
            html_card_end(html);
        }
        report_lines_fini(&lines);
    }
    base_free(marks);
}

void page_compared_curves(const struct report_page *page, struct base_str *html)
{
    static const struct {
        const char *what, *title, *x_title, *key;
        enum report_x x;
    } charts[] = {
        {"step.loss", "Loss over steps", "step", "loss-steps", REPORT_STEP},
        {"step.loss", "Loss over time", "seconds", "loss-time", REPORT_TIME},
        {"epoch.test_accuracy", "Test accuracy over steps", "step", "accuracy-steps", REPORT_STEP},
        {"epoch.test_accuracy", "Test accuracy over time", "seconds", "accuracy-time", REPORT_TIME},
        {"epoch.test_rmse", "Test RMSE over steps", "step", "rmse-steps", REPORT_STEP},
        {"epoch.test_rmse", "Test RMSE over time", "seconds", "rmse-time", REPORT_TIME},
        {"epoch.test_r2", "Test R² over steps", "step", "r2-steps", REPORT_STEP}};

    for (size_t c = 0; c < sizeof charts / sizeof *charts; c++) {
        struct report_lines lines = {0};

        for (size_t i = 0; i < page->count; i++) {
            const struct report_story *s = &page->runs[i].story;

            report_lines_add(&lines, s, charts[c].what, charts[c].x, s->name, false);
            if (lines.count == i) /* an empty line: a run has one colour in all charts */
                report_lines_add_curve(&lines, &(struct report_curve){0}, s->name, 1);
        }
        if (tells(&lines)) {
            html_card(html, charts[c].key, charts[c].title, "");
            put_chart(html, &lines, charts[c].title, charts[c].x_title, NULL, 0);
            html_card_end(html);
        }
        report_lines_fini(&lines);
    }
}

/* ---- time by category ---- */

static const char *const categories[] = {"compute", "communicate", "data", "wait", "stolen"};
enum { CATEGORIES = sizeof categories / sizeof *categories };

static void put_time(const struct report_story *s, struct base_str *html)
{
    const json_t *ranks = html_at(s->json, "result", "ranks");
    size_t count = json_array_size(ranks);
    double *values = base_calloc(CATEGORIES * count + 1, sizeof *values);
    struct report_series series[CATEGORIES];
    char **rows = base_calloc(count + 1, sizeof *rows);

    for (size_t i = 0; i < count; i++)
        rows[i] = base_format("rank %zu", i);
    for (size_t c = 0; c < CATEGORIES; c++) {
        series[c] =
            (struct report_series){.name = categories[c], .y = values + c * count, .count = count};
        for (size_t i = 0; i < count; i++)
            values[c * count + i] =
                json_number_value(json_object_get(json_array_get(ranks, i), categories[c]));
    }
    html_card(html, "time", "Time by worker", "seconds of the training loop");
    report_svg_stack(&(struct report_chart){.title = "Time by worker",
                                            .x_title = "seconds",
                                            .series = series,
                                            .series_count = CATEGORIES,
                                            .rows = (const char *const *)rows,
                                            .row_count = count,
                                            .width = HTML_CHART,
                                            .bare = true},
                     html);
    html_card_end(html);
    base_names_free(rows, count);
    base_free(values);
}

/* ---- who was there ---- */

/* A resumed run numbers its workers from 1 again; base_free. */
static char *worker_name(const struct report_node *n)
{
    return n->session == 0 ? base_format("worker %" PRId64, n->id)
                           : base_format("worker %" PRId64 ", session %zu", n->id, n->session + 1);
}

static void put_membership(const struct report_story *s, struct base_str *html)
{
    static const struct report_series fates[] = {{.name = "in the view"}, {.name = "then lost"}};
    struct report_box *boxes = base_calloc(s->node_count + 1, sizeof *boxes);
    char **rows = base_calloc(s->node_count + 1, sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];

        if (n->id <= 0 || isnan(n->from))
            continue;
        boxes[count] =
            (struct report_box){.row = count,
                                .series = n->fate != NULL,
                                .from = n->from,
                                .to = isnan(n->to) ? s->cluster_seconds : fmax(n->from, n->to)};
        snprintf(boxes[count].text, sizeof boxes->text, "%.11s", n->fate != NULL ? n->fate : "");
        rows[count++] = worker_name(n);
    }
    if (count > 0) {
        html_card(html, "membership", "Workers over time", "seconds since the job began");
        report_svg_timeline(&(struct report_chart){.title = "Workers over time",
                                                   .x_title = "seconds",
                                                   .series = fates,
                                                   .series_count = 2,
                                                   .rows = (const char *const *)rows,
                                                   .row_count = count,
                                                   .width = HTML_CHART,
                                                   .bare = true},
                            boxes, count, html);
        html_card_end(html);
    }
    base_names_free(rows, count);
    base_free(boxes);
}

/* ---- the node monitor ---- */

static double peak(const struct report_curve *c)
{
    double most = -INFINITY;

    for (size_t i = 0; i < c->count; i++)
        most = fmax(most, c->bins[i].high);
    return most;
}

/* Has fewer than SHOWN_NODES workers a higher peak of memory? Of equals the first ones count. */
static bool is_shown(const struct report_story *s, size_t index)
{
    double own = peak(&s->nodes[index].memory);
    size_t higher = 0;

    for (size_t i = 0; i < s->node_count; i++) {
        double other = peak(&s->nodes[i].memory);

        higher += s->nodes[i].id > 0 && (other > own || (other == own && i < index));
    }
    return s->nodes[index].id > 0 && s->nodes[index].memory.count > 0 && higher < SHOWN_NODES;
}

static void put_monitor(const struct report_story *s, bool memory, struct base_str *html)
{
    struct report_lines lines = {0};
    const char *title = memory ? "Memory of workers" : "CPU of workers";
    size_t workers = 0, most = 0;
    char hint[80];

    for (size_t i = 0; i < s->node_count; i++) {
        const struct report_node *n = &s->nodes[i];
        char *name = worker_name(n);

        workers += n->id > 0 && n->memory.count > 0;
        most = n->id > 0 && n->memory.count > most ? n->memory.count : most;
        if (is_shown(s, i))
            report_lines_add_curve(&lines, memory ? &n->memory : &n->cpu, name,
                                   memory ? 1e-6 : 100);
        base_free(name);
    }
    snprintf(hint, sizeof hint, workers > SHOWN_NODES ? "%s; the %d of %zu with most memory" : "%s",
             memory ? "MB" : "% of a core", SHOWN_NODES, workers);
    if (most > 1) { /* single heartbeats are no curve */
        html_card(html, memory ? "memory" : "cpu", title, hint);
        put_chart(html, &lines, title, "seconds", NULL, 0);
        html_card_end(html);
    }
    report_lines_fini(&lines);
}

static void put_turns(const struct report_story *s, struct base_str *html)
{
    html_card(html, "turns", "On the way", "marked in the curves");
    base_str_add(html, "<div class=\"table\"><table class=\"facts\"><tbody>\n");
    for (size_t i = 0; i < s->turn_count && i < 40; i++) {
        char *title = base_format("after step %.0f", s->turns[i].step);

        html_fact(html, title, s->turns[i].text);
        base_free(title);
    }
    if (s->turn_count > 40)
        base_str_add(html, "<tr><th>…</th><td>and %zu more</td></tr>\n", s->turn_count - 40);
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
}

void page_workers(const struct report_story *s, struct base_str *html)
{
    if (json_array_size(html_at(s->json, "result", "ranks")) > 0)
        put_time(s, html);
    put_membership(s, html);
    put_monitor(s, false, html);
    put_monitor(s, true, html);
    if (s->turn_count > 0)
        put_turns(s, html);
}
