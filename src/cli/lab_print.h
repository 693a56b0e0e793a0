/* SPDX-License-Identifier: MIT
 *
 * What `paceline lab` prints: the table of means and deviations, the plan of --dry-run, the list of
 * labs; and the CSV file.
 */
#ifndef CLI_LAB_PRINT_H
#define CLI_LAB_PRINT_H

#include "lab/summary.h"
#include "lab/work.h"

void cli_lab_table(const struct lab *lab, const struct lab_results *results);
/* Where the lab has an option `across`: its values side by side, by the first of the columns. */
void cli_lab_across(const struct lab *lab, const struct lab_results *results);
base_status cli_lab_csv(const struct lab *lab, const struct lab_results *results, const char *path);
base_status cli_lab_plan(const struct lab_work *work, bool json);
base_status cli_lab_list(bool json);

#endif
