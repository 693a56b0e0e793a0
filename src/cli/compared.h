/* SPDX-License-Identifier: MIT
 *
 * Runs side by side, for `compare` and `report`: settings that differ, and figures against the
 * first run. A run without a result has null figures.
 */
#ifndef CLI_COMPARED_H
#define CLI_COMPARED_H

#include "report/page.h"
#include "train/run.h"

/* A list with an object for each run (docs/json.md). *keys_p: names of the settings that differ, in
 * the order of the option table. Both are new references. */
json_t *cli_compared(const struct train_run *runs, int count, json_t **keys_p);

/* Figures by name, in the order of the table; NULL after the last. */
const char *cli_compared_column(size_t index);

/* The columns are the name, the settings that differ, the strategy and the figures. Its cells are
 * the caller's, as cli_table takes them. */
struct report_table cli_compared_table(const json_t *list, const json_t *keys);

#endif
