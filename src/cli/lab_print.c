/* SPDX-License-Identifier: MIT */
#include "cli/lab_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

/* ---- the table ---- */

/* A column has the digits of its largest mean. */
static int digits_of(const struct lab *lab, const struct lab_results *results, const char *figure)
{
    double most = 0;

    for (size_t i = 0; i < lab->point_count; i++)
        if (lab->points[i].selected)
            most = fmax(most, lab_point_figure(lab, results, figure, &lab->points[i]).mean);
    return lab_figure_digits(figure, lab_figure_scale(figure) * most);
}

/* "97.52 ± 0.31" */
static char *mean_text(const char *figure, int digits, const struct lab_statistics *s)
{
    double scale = lab_figure_scale(figure), shown = scale * s->mean;

    if (s->count == 0)
        return base_strdup("-");
    if (s->count == 1)
        return base_format("%.*f", digits, shown);
    return base_format("%.*f ± %.*f", digits, shown, digits, scale * s->deviation);
}

static char *theirs_text(const char *figure, const struct lab_point *point)
{
    double shown = lab_figure_scale(figure) * lab_theirs(point, figure);

    return isnan(shown) ? base_strdup("-")
                        : base_format("%.*f", lab_figure_digits(figure, shown), shown);
}

/* Has some point a figure of others for it? */
static bool has_theirs(const struct lab *lab, const char *figure)
{
    for (size_t i = 0; i < lab->point_count; i++)
        if (lab->points[i].selected && !isnan(lab_theirs(&lab->points[i], figure)))
            return true;
    return false;
}

static size_t runs_done(const struct lab *lab, const struct lab_results *results,
                        const struct lab_point *point)
{
    size_t done = 0;

    for (size_t i = 0; i < lab_seeds_of(lab, point); i++)
        done += lab_results_get(results, point, lab->seeds[i]) != NULL;
    return done;
}

void cli_lab_table(const struct lab *lab, const struct lab_results *results)
{
    size_t most = (lab->point_count + 1) * (2 + 2 * lab->column_count), count = 0, rows = 1;
    char **cells = base_calloc(most, sizeof *cells);
    int digits[LAB_MAX_COLUMNS];

    cells[count++] = base_strdup("case");
    cells[count++] = base_strdup("runs");
    for (size_t c = 0; c < lab->column_count; c++) {
        digits[c] = digits_of(lab, results, lab->columns[c]);
        cells[count++] = lab_figure_title(lab->columns[c]);
        if (has_theirs(lab, lab->columns[c]))
            cells[count++] = base_strdup("theirs");
    }
    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];

        if (!point->selected)
            continue;
        rows++;
        cells[count++] = base_strdup(point->name);
        cells[count++] = base_format("%zu", runs_done(lab, results, point));
        for (size_t c = 0; c < lab->column_count; c++) {
            struct lab_statistics s = lab_point_figure(lab, results, lab->columns[c], point);

            cells[count++] = mean_text(lab->columns[c], digits[c], &s);
            if (has_theirs(lab, lab->columns[c]))
                cells[count++] = theirs_text(lab->columns[c], point);
        }
    }
    cli_table(stdout, cells, rows, count / rows);
    base_free(cells);
}

/* ---- side by side ---- */

/* Titles of rows or columns, each once, in their order. */
static size_t add_once(char **titles, size_t count, const char *title)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(titles[i], title) == 0)
            return count;
    titles[count] = base_strdup(title);
    return count + 1;
}

/* What was chosen for the option; "-": the case has none. base_free. */
static char *chosen(const struct lab *lab, const struct lab_point *point)
{
    const json_t *value = json_object_get(point->options, lab->across);

    return value != NULL ? lab_value_text(value) : base_strdup("-");
}

/* The first of the lab's columns, of the selected point in a row and a column; base_free. */
static char *figure_at(const struct lab *lab, const struct lab_results *results, const char *row,
                       const char *column, int digits)
{
    struct lab_statistics s = {0};

    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];
        char *value = chosen(lab, point);

        if (point->selected && strcmp(point->row, row) == 0 && strcmp(value, column) == 0)
            s = lab_point_figure(lab, results, lab->columns[0], point);
        base_free(value);
    }
    return mean_text(lab->columns[0], digits, &s);
}

static void free_titles(char **titles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        base_free(titles[i]);
    base_free(titles);
}

void cli_lab_across(const struct lab *lab, const struct lab_results *results)
{
    size_t most = lab->point_count + 1, rows = 0, columns = 0, count = 0;
    char **row = base_calloc(most, sizeof *row), **column = base_calloc(most, sizeof *column);
    char **cells;
    const char *figure = lab->columns[0];
    const int digits = digits_of(lab, results, figure);

    for (size_t i = 0; i < lab->point_count; i++) {
        char *value = chosen(lab, &lab->points[i]);

        if (lab->points[i].selected) {
            rows = add_once(row, rows, lab->points[i].row);
            columns = add_once(column, columns, value);
        }
        base_free(value);
    }
    cells = base_calloc((rows + 1) * (columns + 1), sizeof *cells);
    cells[count++] = lab_figure_title(figure);
    for (size_t c = 0; c < columns; c++)
        cells[count++] = base_strdup(column[c]);
    for (size_t r = 0; r < rows; r++) {
        cells[count++] = base_strdup(row[r]);
        for (size_t c = 0; c < columns; c++)
            cells[count++] = figure_at(lab, results, row[r], column[c], digits);
    }
    printf("\n");
    cli_table(stdout, cells, rows + 1, columns + 1);
    base_free(cells);
    free_titles(row, rows);
    free_titles(column, columns);
}

/* ---- CSV: a line a run ---- */

/* The options of all points, each once, in their order: keys of an object. */
static json_t *all_options(const struct lab *lab)
{
    json_t *all = json_object();

    for (size_t i = 0; i < lab->point_count; i++)
        json_object_update_missing(all, lab->points[i].options);
    return all;
}

static void csv_run(const struct lab *lab, const struct lab_results *results,
                    const struct lab_point *point, int64_t seed, json_t *keys, FILE *out)
{
    const char *key;
    json_t *unused;

    cli_csv_field(point->name, out);
    fprintf(out, ",%lld", (long long)seed);
    json_object_foreach(keys, key, unused)
    {
        const json_t *value = json_object_get(point->options, key);
        char *text = value != NULL ? lab_value_text(value) : base_strdup("");

        (void)unused;
        fputc(',', out);
        cli_csv_field(text, out);
        base_free(text);
    }
    for (size_t c = 0; c < lab->column_count; c++) {
        double value = lab_run_figure(lab, results, lab->columns[c], point, seed);

        fputc(',', out);
        if (isfinite(value))
            fprintf(out, "%.9g", value);
    }
    fputc('\n', out);
}

static void csv_head(const struct lab *lab, json_t *keys, FILE *out)
{
    const char *key;
    json_t *unused;

    fputs("case,seed", out);
    json_object_foreach(keys, key, unused)
    {
        (void)unused;
        fputc(',', out);
        cli_csv_field(key, out);
    }
    for (size_t c = 0; c < lab->column_count; c++) {
        fputc(',', out);
        cli_csv_field(lab->columns[c], out);
    }
    fputc('\n', out);
}

base_status cli_lab_csv(const struct lab *lab, const struct lab_results *results, const char *path)
{
    base_status st;
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    json_t *keys = all_options(lab);

    csv_head(lab, keys, out);
    for (size_t i = 0; i < lab->point_count; i++)
        for (size_t s = 0; s < lab_seeds_of(lab, &lab->points[i]) && lab->points[i].selected; s++)
            if (lab_results_get(results, &lab->points[i], lab->seeds[s]) != NULL)
                csv_run(lab, results, &lab->points[i], lab->seeds[s], keys, out);
    fclose(out);
    st = base_file_replace(path, text, count);
    free(text);
    json_decref(keys);
    return st;
}

/* ---- what would be done ---- */

/* As a shell reads it as one word. */
static void add_quoted(struct base_str *line, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%^";

    if (text[strspn(text, plain)] == '\0') {
        base_str_add(line, "%s", text);
        return;
    }
    base_str_add(line, "'");
    for (const char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            base_str_add(line, "'\\''");
        else
            base_str_add(line, "%c", *at);
    base_str_add(line, "'");
}

static char *command_of(const struct lab_point *point)
{
    struct base_str line = {0};
    const char *key;
    json_t *value;

    for (size_t i = 0; i < json_array_size(point->launch); i++) {
        add_quoted(&line, json_string_value(json_array_get(point->launch, i)));
        base_str_add(&line, " ");
    }
    base_str_add(&line, "paceline train");
    json_object_foreach(point->options, key, value)
    {
        char *text = lab_value_text(value);

        base_str_add(&line, " --%s=", key);
        add_quoted(&line, text);
        base_free(text);
    }
    return base_str_take(&line);
}

static json_t *plan_object(const struct lab_work *work, size_t total, size_t left, double seconds)
{
    const struct lab *lab = work->lab;
    json_t *cases = json_array();

    for (size_t i = 0; i < lab->point_count; i++)
        if (lab->points[i].selected)
            json_array_append_new(
                cases, json_pack("{s:s, s:O, s:i, s:I, s:I}", "case", lab->points[i].name,
                                 "options", lab->points[i].options, "cores", lab->points[i].cores,
                                 "runs", (json_int_t)lab_seeds_of(lab, &lab->points[i]), "done",
                                 (json_int_t)runs_done(lab, work->results, &lab->points[i])));
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:o}", "schema", 1, "lab", lab->name, "about",
                     lab->about, "runs", (json_int_t)total, "done", (json_int_t)(total - left),
                     "seconds_left", base_json_number(left > 0 ? seconds : 0), "cases", cases);
}

base_status cli_lab_plan(const struct lab_work *work, bool json)
{
    const struct lab *lab = work->lab;
    double seconds;
    size_t left = lab_left(work, &seconds), cases = 0;
    base_status st = BASE_OK;

    for (size_t i = 0; i < lab->point_count; i++)
        cases += lab->points[i].selected;
    if (json) {
        json_t *object = plan_object(work, lab_runs(lab), left, seconds);

        st = base_json_print(object);
        json_decref(object);
        return st;
    }
    for (size_t i = 0; i < lab->point_count; i++) {
        const struct lab_point *point = &lab->points[i];
        char *command = command_of(point);

        if (point->selected)
            printf("%s: %zu of %zu done, %d core%s\n    %s\n", point->name,
                   runs_done(lab, work->results, point), lab_seeds_of(lab, point), point->cores,
                   base_plural(point->cores), command);
        base_free(command);
    }
    printf("%zu case%s, %zu runs, %zu to go", cases, base_plural((int64_t)cases), lab_runs(lab),
           left);
    if (left > 0 && !isnan(seconds))
        printf(", about %s", lab_span(seconds).text);
    printf("\n");
    return BASE_OK;
}

/* ---- the labs of the program ---- */

base_status cli_lab_list(bool json)
{
    base_status st = BASE_OK;
    json_t *list = json_array(), *object = NULL, *file = NULL;
    struct lab lab = {0};
    char *name = NULL;

    for (const struct lab_builtin *b = lab_builtins; b->name != NULL; b++) {
        TRY(lab_find(b->name, &file, &name));
        TRY(lab_open(name, file, &(struct lab_changes){0}, &lab));
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "lab", name, "about", lab.about,
                                              "runs", (json_int_t)lab_runs(&lab)));
        if (!json)
            printf("%-8s %s (%zu cases, %zu runs)\n", name, lab.about, lab.point_count,
                   lab_runs(&lab));
        lab_close(&lab);
        json_decref(file);
        base_free(name);
        file = NULL;
        name = NULL;
    }
    object = json_pack("{s:i, s:O}", "schema", 1, "labs", list);
    if (json)
        TRY(base_json_print(object));
out:
    lab_close(&lab);
    json_decref(file);
    base_free(name);
    json_decref(object);
    json_decref(list);
    return st;
}
