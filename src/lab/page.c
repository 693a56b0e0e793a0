/* SPDX-License-Identifier: MIT */
#include "lab/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cpus.h"
#include "base/file.h"
#include "base/mem.h"
#include "lab/tables.h"
#include "report/html.h"

enum { MAX_RUN_JSON = 64 << 20 };

/* ---- pages of runs ---- */

/* The run's folder below that of the lab, "runs/NAME"; NULL: it is not done. base_free. */
static char *run_folder(const json_t *record)
{
    const char *run = json_string_value(html_at(record, "result", "run"));
    const char *slash = run != NULL ? strrchr(run, '/') : NULL;

    return run == NULL ? NULL : base_format("runs/%s", slash != NULL ? slash + 1 : run);
}

static base_status write_run_page(const char *folder, const char *path, const char *made)
{
    base_status st = BASE_OK;
    struct report_page_run *run = base_calloc(1, sizeof *run);
    char *about = base_format("%s/run.json", folder);
    struct base_str html = {0};
    json_t *json = NULL;

    TRY(base_json_load(about, MAX_RUN_JSON, &json));
    run->story.name = strrchr(folder, '/') + 1;
    run->story.status = "done"; /* of others there is no record */
    run->story.json = json;
    report_story_read(folder, &run->story);
    report_page(&(struct report_page){.runs = run, .count = 1, .made = made}, &html);
    TRY(base_file_replace(path, html.text, html.length));
out:
    report_story_fini(&run->story);
    base_free(run);
    json_decref(json);
    base_str_fini(&html);
    base_free(about);
    return st;
}

/* A link to the run's page, which is made if it is not there; "": its folder is gone or cannot be
 * read, which is no failure of the lab. base_free. */
static char *run_link(const struct lab_results *results, const json_t *record, const char *made)
{
    char *below = run_folder(record), *link;
    char *folder = base_format("%s/%s", results->folder, below != NULL ? below : "none");
    char *path = base_format("%s/report.html", folder);
    bool there = base_exists(path);

    if (!there && below != NULL && base_is_dir(folder))
        there = write_run_page(folder, path, made) == BASE_OK;
    link = there ? base_format("%s/report.html", below) : base_strdup("");
    base_free(path);
    base_free(folder);
    base_free(below);
    return link;
}

/* ---- its parts ---- */

static void put_lead(const struct lab_page *page, struct base_str *html)
{
    const struct lab_work *w = page->work;
    size_t failed = json_array_size(w->failures);
    char *text;

    base_str_add(html, "<div class=\"head\"><h1>lab ");
    report_xml_text(html, w->lab->name);
    base_str_add(html, "</h1></div>\n<p class=\"lead\">");
    report_xml_text(html, w->lab->about);
    base_str_add(html, "</p>\n");
    if (page->quick)
        html_note(html, "The quick form: less is trained than the lab means to, so these figures "
                        "are no results.");
    if (w->done < w->total) {
        text = base_format("%zu of %zu runs are done%s.", w->done, w->total,
                           failed > 0 ? "" : "; the same command goes on");
        html_note(html, text);
        base_free(text);
    }
    for (size_t i = 0; i < failed && i < 8; i++) {
        const json_t *failure = json_array_get(w->failures, i);

        text = base_format("%s, seed %" PRId64 ", failed: %s",
                           json_string_value(html_at(failure, "case", NULL)),
                           (int64_t)json_integer_value(html_at(failure, "seed", NULL)),
                           json_string_value(html_at(failure, "message", NULL)));
        html_note(html, text);
        base_free(text);
    }
}

/* The row of the table that is the best point's; 0: there is none. */
static size_t row_of(const struct lab *lab, const struct lab_point *best)
{
    size_t row = 0;

    if (best == NULL)
        return 0;
    for (const struct lab_point *point = lab->points; point <= best; point++)
        row += point->selected;
    return row;
}

static void put_tables(const struct lab_work *w, struct base_str *html)
{
    const struct lab_point *best = lab_best(w->lab, w->results);
    struct report_table table;
    char *title;

    base_str_add(html, "<section>\n");
    lab_table(w->lab, w->results, &table);
    report_page_table(&table, "figures", row_of(w->lab, best), html);
    report_table_fini(&table);
    if (w->lab->across != NULL) {
        lab_table_across(w->lab, w->results, &table);
        report_page_table(&table, "across", 0, html);
        report_table_fini(&table);
    }
    if (best != NULL) {
        title = lab_figure_title(w->lab->best);
        base_str_add(html, "<p class=\"lead\">Best ");
        report_xml_text(html, title);
        base_str_add(html, ": <b data-key=\"best\">");
        report_xml_text(html, best->name);
        base_str_add(html, "</b></p>\n");
        base_free(title);
    }
    base_str_add(html, "</section>\n");
}

static void put_plots(const struct lab_work *w, struct base_str *html)
{
    base_str_add(html, "<div class=\"grid two\">\n");
    for (size_t i = 0; i < w->lab->plot_count; i++) {
        const struct lab_plot *plot = &w->lab->plots[i];
        struct base_str svg = {0};
        char *y_title = lab_figure_title(plot->y), *title = NULL;

        if (lab_plot_svg(w->lab, w->results, plot, true, &svg)) {
            title = lab_plot_title(w->lab, plot);
            html_card(html, plot->name, title, y_title);
            base_str_append(html, svg.text, svg.length);
            html_card_end(html);
        }
        base_str_fini(&svg);
        base_free(title);
        base_free(y_title);
    }
    base_str_add(html, "</div>\n");
}

static void put_run(const struct lab_work *w, const struct lab_point *point, int64_t seed,
                    const char *made, struct base_str *html)
{
    const json_t *record = lab_results_get(w->results, point, seed);
    char *link, text[HTML_NUMBER];

    if (record == NULL)
        return;
    link = run_link(w->results, record, made);
    html_duration(lab_figure_value("wall_seconds", record), text);
    base_str_add(html, "<tr><td>");
    if (link[0] != '\0')
        html_link(html, link, point->name);
    else
        report_xml_text(html, point->name);
    base_str_add(html, "</td><td>%" PRId64 "</td><td>%s</td></tr>\n", seed, text);
    base_free(link);
}

static void put_runs(const struct lab_work *w, const char *made, struct base_str *html)
{
    base_str_add(html,
                 "<section><h2>Runs</h2>\n<div class=\"card table\"><table data-card=\"runs\">"
                 "<thead><tr><th>case</th><th>seed</th><th>with its set-up</th></tr></thead>"
                 "<tbody>\n");
    for (size_t p = 0; p < w->lab->point_count; p++)
        for (size_t s = 0;
             s < lab_seeds_of(w->lab, &w->lab->points[p]) && w->lab->points[p].selected; s++)
            put_run(w, &w->lab->points[p], w->lab->seeds[s], made, html);
    base_str_add(html, "</tbody></table></div>\n</section>\n");
}

static void put_facts(const struct lab_page *page, struct base_str *html)
{
    char cpu[128], *machine;

    base_cpu_name(cpu, sizeof cpu);
    machine = base_format("%s, %d core%s", cpu, page->work->cores, base_plural(page->work->cores));
    base_str_add(html, "<section><h2>How</h2>\n");
    html_card(html, "how", "This lab", "");
    base_str_add(html, "<div class=\"table\"><table class=\"facts\"><tbody>\n");
    html_fact(html, "command", page->command);
    html_fact(html, "machine", machine);
    html_fact(html, "folder", page->work->results->folder);
    base_str_add(html, "</tbody></table></div>\n");
    html_card_end(html);
    base_str_add(html, "</section>\n");
    base_free(machine);
}

base_status lab_page_write(const struct lab_page *page, char **path_p)
{
    base_status st = BASE_OK;
    char *path = base_format("%s/report.html", page->work->results->folder);
    char made[REPORT_MADE];
    struct base_str html = {0};

    *path_p = NULL;
    report_made(made);
    report_page_begin(page->work->lab->name, "lab", &html);
    put_lead(page, &html);
    put_tables(page->work, &html);
    put_plots(page->work, &html);
    put_runs(page->work, made, &html);
    put_facts(page, &html);
    report_page_end(made,
                    "A mean has its deviation over the seeds; theirs: what the report that is "
                    "repeated has.",
                    &html);
    TRY(base_file_replace(path, html.text, html.length));
    *path_p = path;
    path = NULL;
out:
    base_str_fini(&html);
    base_free(path);
    return st;
}
