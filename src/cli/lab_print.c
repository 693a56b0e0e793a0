/* SPDX-License-Identifier: MIT */
#include "cli/lab_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "lab/tables.h"

/* ---- tables ---- */

static void print_table(struct report_table *table)
{
    cli_table(stdout, table->cells, table->rows, table->columns); /* it takes the cells over */
    base_free(table->cells);
}

void cli_lab_tables(const struct lab *lab, const struct lab_results *results)
{
    struct report_table table;
    const struct lab_point *best = lab_best(lab, results);
    char *title;

    lab_table(lab, results, &table);
    print_table(&table);
    if (lab->across != NULL) {
        printf("\n");
        lab_table_across(lab, results, &table);
        print_table(&table);
    }
    if (best != NULL) {
        title = lab_figure_title(lab->best);
        printf("best %s: %s\n", title, best->name);
        base_free(title);
    }
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

char *cli_own_command(void)
{
    enum { ROOM = 1 << 16 };
    struct base_str line = {0};
    char *words = base_calloc(ROOM + 1, 1);
    FILE *file = fopen("/proc/self/cmdline", "re"); /* its size is told as 0 */
    size_t count = file != NULL ? fread(words, 1, ROOM, file) : 0;

    if (file != NULL)
        fclose(file);
    base_str_add(&line, "paceline");
    for (size_t at = strlen(words) + 1; at < count; at += strlen(words + at) + 1) {
        base_str_add(&line, " ");
        add_quoted(&line, words + at);
    }
    base_free(words);
    return base_str_take(&line);
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
                                 (json_int_t)lab_runs_done(lab, work->results, &lab->points[i])));
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
                   lab_runs_done(lab, work->results, point), lab_seeds_of(lab, point), point->cores,
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
