/* SPDX-License-Identifier: MIT */
#include "data/table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static void column_fini(struct data_column *column)
{
    for (int i = 0; i < column->category_count; i++)
        base_free(column->categories[i]);
    base_free(column->categories);
    base_free(column->name);
}

void data_table_fini(struct data_table *table)
{
    for (int i = 0; i < table->column_count; i++)
        column_fini(&table->columns[i]);
    base_free(table->columns);
    column_fini(&table->target);
    *table = (struct data_table){0};
}

static struct data_column copy_column(const struct data_column *from)
{
    struct data_column to = *from;

    to.name = base_strdup(from->name);
    to.categories = base_calloc((size_t)from->category_count, sizeof *to.categories);
    for (int i = 0; i < from->category_count; i++)
        to.categories[i] = base_strdup(from->categories[i]);
    return to;
}

void data_table_copy(const struct data_table *from, struct data_table *to_p)
{
    *to_p = *from;
    to_p->columns = base_calloc((size_t)from->column_count, sizeof *to_p->columns);
    for (int i = 0; i < from->column_count; i++)
        to_p->columns[i] = copy_column(&from->columns[i]);
    to_p->target = copy_column(&from->target);
}

base_status data_table_count(struct data_table *table)
{
    int64_t features = 0;

    for (int i = 0; i < table->column_count; i++)
        features += table->columns[i].kind == DATA_NUMBER ? 1 : table->columns[i].category_count;
    if (features < 1)
        return base_fail(BASE_ERR_DATA, "there is no column to predict '%s' from",
                         table->target.name);
    if (features > DATA_MAX_FEATURES)
        return base_fail(BASE_ERR_DATA, "its columns make %lld features, 1 to %d can be used",
                         (long long)features, DATA_MAX_FEATURES);
    table->features = (int)features;
    return BASE_OK;
}

int data_table_find(const struct data_table *table, const char *name)
{
    for (int i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return i;
    return -1;
}

/* ---- fields ---- */

const char *data_trim(const char *text, size_t *length_p)
{
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    *length_p = length;
    return text;
}

bool data_is_missing(const char *text)
{
    static const char *const words[] = {"", "na", "nan", "?", "null"};
    size_t length;

    text = data_trim(text, &length);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncasecmp(text, words[i], length) == 0)
            return true;
    return false;
}

/* strtod also takes "0x1p3", "inf" and "nan"; here a number is made of these alone. Sums of squares
 * of what is below the bound are finite. */
bool data_is_number(const char *text, double *number_p)
{
    char *end = NULL;
    size_t length;

    text = data_trim(text, &length);
    if (length == 0 || strspn(text, "0123456789+-.eE") < length)
        return false;
    *number_p = strtod(text, &end);
    return end == text + length && fabs(*number_p) < 1e30;
}

int data_column_category(const struct data_column *column, const char *name)
{
    size_t length;

    name = data_trim(name, &length);
    if (data_is_missing(name))
        length = 0;
    for (int i = 0; i < column->category_count; i++)
        if (strncmp(column->categories[i], name, length) == 0 &&
            column->categories[i][length] == '\0')
            return i;
    return -1;
}

base_status data_column_cell(const struct data_column *column, const char *text, double *cell_p)
{
    *cell_p = NAN;
    if (column->kind == DATA_CATEGORY)
        *cell_p = data_column_category(column, text);
    else if (!data_is_missing(text) && !data_is_number(text, cell_p))
        return base_fail(BASE_ERR_DATA, "'%s' in column '%s' is not a number", text, column->name);
    return BASE_OK;
}

/* ---- features ---- */

void data_table_features(const struct data_table *table, const double *cells, float *x)
{
    for (int i = 0; i < table->column_count; i++) {
        const struct data_column *column = &table->columns[i];
        double cell = cells[i];

        if (column->kind == DATA_NUMBER) {
            *x++ =
                (float)(((isnan(cell) ? column->fill : cell) - column->mean) / column->deviation);
            continue;
        }
        memset(x, 0, (size_t)column->category_count * sizeof *x);
        if (cell >= 0)
            x[(int)cell] = 1;
        x += column->category_count;
    }
}
