/* SPDX-License-Identifier: MIT
 *
 * What attacks did to runs and what defences cost, for `compare --damage` and reports: clean,
 * attacked and defended runs side by side, against the first of them.
 */
#ifndef CLI_DAMAGE_H
#define CLI_DAMAGE_H

#include "report/page.h"
#include "train/run.h"

/* Was one of the runs attacked on purpose? */
bool cli_damage_is(const struct train_run *runs, int count);
/* A list with an object for each run (docs/json.md); a new reference. */
json_t *cli_damage(const struct train_run *runs, int count);
/* The same for people; its cells are the caller's, as cli_table takes them. */
struct report_table cli_damage_table(const json_t *list);

#endif
