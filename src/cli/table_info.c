/* SPDX-License-Identifier: MIT */
#include "cli/table_info.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "model/table.h"

enum { SHOWN = 6 }; /* the most categories of a column that are shown */

void cli_table_info_json(const struct data_info *info, json_t *object)
{
    json_object_update_new(object, model_table_to_json(info->table));
    json_object_set_new(object, "features", json_integer(info->table->features));
}

static void print_column(const struct data_column *column)
{
    struct base_str line = {0};

    base_str_column(&line, column->name, -24);
    if (column->kind == DATA_NUMBER)
        base_str_add(&line, " number    mean %.6g, deviation %.6g", column->mean,
                     column->deviation);
    else
        base_str_add(&line, " category  %d: ", column->category_count);
    for (int i = 0; i < column->category_count && i < SHOWN; i++)
        base_str_add(&line, "%s%s", i > 0 ? ", " : "",
                     column->categories[i][0] != '\0' ? column->categories[i] : "(missing)");
    printf("    %s%s\n", line.text, column->category_count > SHOWN ? ", …" : "");
    base_str_fini(&line);
}

void cli_table_info_text(const struct data_info *info)
{
    const struct data_table *table = info->table;

    printf("  target     %s: a %s\n", table->target.name,
           table->target.kind == DATA_NUMBER ? "number, predicted by regression" : "class");
    printf("  features   %d, of %d column%s (statistics are of the training part)\n",
           table->features, table->column_count, base_plural(table->column_count));
    for (int i = 0; i < table->column_count; i++)
        print_column(&table->columns[i]);
    if (table->target.kind == DATA_NUMBER)
        print_column(&table->target);
}
