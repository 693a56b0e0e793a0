/* SPDX-License-Identifier: MIT
 *
 * The tables in which a lab ends, as texts: for the terminal and for the page.
 */
#ifndef LAB_TABLES_H
#define LAB_TABLES_H

#include "lab/summary.h"
#include "report/page.h"

/* A row for each selected point: means with their deviations, and beside them what the report that
 * is repeated has. report_table_fini. */
void lab_table(const struct lab *lab, const struct lab_results *results,
               struct report_table *table_p);
/* The first of the columns, with the values of the option lab->across side by side. */
void lab_table_across(const struct lab *lab, const struct lab_results *results,
                      struct report_table *table_p);

/* How many runs of a point have a record. */
size_t lab_runs_done(const struct lab *lab, const struct lab_results *results,
                     const struct lab_point *point);

#endif
