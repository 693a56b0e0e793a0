/* SPDX-License-Identifier: MIT
 *
 * A table described: its columns, and how a row becomes what a network computes with. A row is a
 * list of cells, one a column: a number (NAN: missing), or the index of a category (-1: one that
 * the training did not have). A number becomes one standardised feature, a category as many as the
 * column has, all 0 but its own. What trained a model on a table is kept with it (model/about.h),
 * so that any later row is read in the same way. Nothing here changes a table that is described:
 * reading is thread-safe.
 */
#ifndef DATA_TABLE_H
#define DATA_TABLE_H

#include <stddef.h>

#include "base/status.h"

enum { DATA_MAX_FEATURES = 65536, DATA_MAX_COLUMNS = 16384, DATA_MAX_CATEGORIES = 1000 };

enum data_kind { DATA_NUMBER, DATA_CATEGORY };

struct data_column {
    char *name;
    enum data_kind kind;
    /* Of a number, over the training part: a missing one becomes `fill`; x' = (x - mean) /
     * deviation. */
    double fill, mean, deviation;
    /* Of a number that is predicted: what lies outside is moved to the nearer end; equal: nothing
     * is. */
    double lowest, highest;
    /* Of a category: the names, sorted; "" stands for a missing value, if the training had one. */
    char **categories;
    int category_count;
};

struct data_table {
    struct data_column *columns; /* the inputs, in the order of the file */
    int column_count;
    int features; /* inputs of a network */
    /* What is to be predicted: a category is a class, a number makes it a regression. */
    struct data_column target;
};

void data_table_fini(struct data_table *table); /* accepts zeros */
void data_table_copy(const struct data_table *from, struct data_table *to_p);
/* Sets `features`; an error when there are none or too many. */
base_status data_table_count(struct data_table *table);
/* Index of the column of this name, or -1. */
int data_table_find(const struct data_table *table, const char *name);

/* A field without the blanks around it, which are never part of it; `text` need not end there. */
const char *data_trim(const char *text, size_t *length_p);
/* Is this how a missing value is written: nothing, NA, NaN, ?, null, in any case? */
bool data_is_missing(const char *text);
/* A decimal number below 1e30 and nothing else, blanks around it apart. */
bool data_is_number(const char *text, double *number_p);
/* A field's text as a cell. It fails where a number is expected and there is none. */
base_status data_column_cell(const struct data_column *column, const char *text, double *cell_p);
/* Index of a category by its name, or -1. A missing value is "". */
int data_column_category(const struct data_column *column, const char *name);

/* cells (column_count) become x (features). */
void data_table_features(const struct data_table *table, const double *cells, float *x);

#endif
