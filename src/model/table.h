/* SPDX-License-Identifier: MIT
 *
 * The description of a table as `about` has it (docs/json.md), and back.
 */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

#include "base/json.h"
#include "data/table.h"

/* A new reference. */
json_t *model_table_to_json(const struct data_table *table);

/* The classes of a target that is a category are `labels`. Everything is checked; on failure the
 * result can be given to data_table_fini. */
base_status model_table_from_json(const json_t *object, char *const *labels, int classes,
                                  struct data_table *table_p);

#endif
