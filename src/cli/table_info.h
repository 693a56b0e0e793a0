/* SPDX-License-Identifier: MIT
 *
 * What `paceline data info` says of a table: rows, target, columns.
 */
#ifndef CLI_TABLE_INFO_H
#define CLI_TABLE_INFO_H

#include "base/json.h"
#include "data/dataset.h"

/* Adds "features", "columns" and "target" (docs/json.md). */
void cli_table_info_json(const struct data_info *info, json_t *object);
void cli_table_info_text(const struct data_info *info);

#endif
