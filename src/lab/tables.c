/* SPDX-License-Identifier: MIT */
#include "lab/tables.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

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

size_t lab_runs_done(const struct lab *lab, const struct lab_results *results,
                     const struct lab_point *point)
{
    size_t done = 0;

    for (size_t i = 0; i < lab_seeds_of(lab, point); i++)
        done += lab_results_get(results, point, lab->seeds[i]) != NULL;
    return done;
}

void lab_table(const struct lab *lab, const struct lab_results *results,
               struct report_table *table_p)
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
        cells[count++] = base_format("%zu", lab_runs_done(lab, results, point));
        for (size_t c = 0; c < lab->column_count; c++) {
            struct lab_statistics s = lab_point_figure(lab, results, lab->columns[c], point);

            cells[count++] = mean_text(lab->columns[c], digits[c], &s);
            if (has_theirs(lab, lab->columns[c]))
                cells[count++] = theirs_text(lab->columns[c], point);
        }
    }
    *table_p = (struct report_table){.cells = cells, .rows = rows, .columns = count / rows};
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

void lab_table_across(const struct lab *lab, const struct lab_results *results,
                      struct report_table *table_p)
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
    *table_p = (struct report_table){.cells = cells, .rows = rows + 1, .columns = columns + 1};
    free_titles(row, rows);
    free_titles(column, columns);
}
