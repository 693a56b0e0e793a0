/* covers: src/data/csv_parse.c src/data/survey.c src/data/table.c */
/* SPDX-License-Identifier: MIT
 *
 * CSV files: records, and what a survey makes of them. Every field is text, line numbers never go
 * back, and every row that a surveyed table takes gives finite features.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "data/data_private.h"
#include "data/survey_private.h"
#include "data/table.h"

static void check_records(const uint8_t *bytes, size_t count)
{
    struct data_csv csv;
    uint64_t line = 0;

    data_csv_init(&csv, bytes, count);
    for (bool more = true; more;) {
        if (data_csv_next(&csv, &more) != BASE_OK || !more)
            continue;
        if (csv.line <= line || csv.count == 0)
            abort();
        line = csv.line;
        for (size_t i = 0; i < csv.count; i++)
            if (!base_is_utf8(data_csv_field(&csv, i)))
                abort();
    }
    data_csv_fini(&csv);
}

/* Rows of the surveyed file as features; the file's columns are looked up by name. */
static void check_rows(struct data_csv *csv, char *const *names, size_t count,
                       const struct data_table *table)
{
    double *cells = base_calloc((size_t)table->column_count, sizeof *cells);
    float *x = base_calloc((size_t)table->features, sizeof *x);

    for (bool more = true; more;) {
        if (data_csv_next(csv, &more) != BASE_OK || !more || csv->count != count)
            continue;
        for (size_t i = 0; i < count; i++) {
            int at = data_table_find(table, names[i]);

            if (at >= 0 && data_column_cell(&table->columns[at], data_csv_field(csv, i),
                                            &cells[at]) != BASE_OK)
                cells[at] = NAN;
        }
        data_table_features(table, cells, x);
        for (int i = 0; i < table->features; i++)
            if (!isfinite(x[i]))
                abort();
    }
    base_free(cells);
    base_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    /* The first byte asks for wishes, which name the columns of the seeds. */
    static const char *const wishes[] = {"a=category", "b=number", "c=ignore"};
    struct data_options options = {.wishes = wishes};
    struct data_csv csv = {0};
    struct data_table table = {0};
    struct base_str notes = {0};
    char **names = NULL;
    size_t columns = 0;

    if (count == 0)
        return 0;
    options.wish_count = bytes[0] % 4;
    options.target = bytes[0] & 4 ? "d" : NULL;
    bytes++;
    count--;
    check_records(bytes, count);
    data_csv_init(&csv, bytes, count);
    if (data_survey_header(&csv, &names, &columns) == BASE_OK) {
        struct data_csv rows = {0};

        if (data_survey(&csv, names, columns, &options, &notes, &table) == BASE_OK) {
            struct data_table copy;

            data_table_copy(&table, &copy);
            data_csv_init(&rows, bytes, count);
            check_rows(&rows, names, columns, &copy);
            data_table_fini(&copy);
        }
        data_csv_fini(&rows);
    }
    data_csv_fini(&csv);
    data_table_fini(&table);
    base_names_free(names, columns);
    base_str_fini(&notes);
    return 0;
}
