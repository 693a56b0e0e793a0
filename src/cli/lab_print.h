/* SPDX-License-Identifier: MIT
 *
 * What `paceline lab` prints: the table of means and deviations, the plan of --dry-run, the list of
 * labs; and the CSV file.
 */
#ifndef CLI_LAB_PRINT_H
#define CLI_LAB_PRINT_H

#include "lab/summary.h"
#include "lab/work.h"

/* The table; where the lab has an option `across`, a second one; and which case is the best. */
void cli_lab_tables(const struct lab *lab, const struct lab_results *results);
base_status cli_lab_csv(const struct lab *lab, const struct lab_results *results, const char *path);
base_status cli_lab_plan(const struct lab_work *work, bool json);
/* The command line of this process; base_free. */
char *cli_own_command(void);
base_status cli_lab_list(bool json);

#endif
