/* SPDX-License-Identifier: MIT
 *
 * Shared inside data/ only: the first look at a file of rows, which finds out what its columns are.
 */
#ifndef DATA_SURVEY_PRIVATE_H
#define DATA_SURVEY_PRIVATE_H

#include "data/data_private.h"
#include "data/table.h"

/* Reads the head of a file: `csv` is then at the first row. *names_p gets a name for each of
 * *count_p columns (base_names_free), its own or, without a header, "column1" and so on. */
base_status data_survey_header(struct data_csv *csv, char ***names_p, size_t *count_p);

/* Reads all rows and describes their columns, without statistics: what is a number, what a
 * category, which column is the target. Records that cannot be read are passed over. `notes` gets
 * a line for each column that is left out. */
base_status data_survey(struct data_csv *csv, char *const *names, size_t count,
                        const struct data_options *options, struct base_str *notes,
                        struct data_table *table_p);

#endif
