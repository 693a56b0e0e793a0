/* SPDX-License-Identifier: MIT */
#include "model/table.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

static json_t *column_to_json(const struct data_column *column, bool with_categories)
{
    json_t *categories;

    if (column->kind == DATA_NUMBER)
        return json_pack("{s:s, s:s, s:f, s:f, s:f}", "name", column->name, "kind", "number",
                         "fill", column->fill, "mean", column->mean, "deviation",
                         column->deviation);
    if (!with_categories)
        return json_pack("{s:s, s:s}", "name", column->name, "kind", "category");
    categories = json_array();
    for (int i = 0; i < column->category_count; i++)
        json_array_append_new(categories, json_string(column->categories[i]));
    return json_pack("{s:s, s:s, s:o}", "name", column->name, "kind", "category", "categories",
                     categories);
}

json_t *model_table_to_json(const struct data_table *table)
{
    json_t *columns = json_array();

    for (int i = 0; i < table->column_count; i++)
        json_array_append_new(columns, column_to_json(&table->columns[i], true));
    return json_pack("{s:o, s:o}", "columns", columns, "target",
                     column_to_json(&table->target, false)); /* its categories are the labels */
}

/* ---- reading ---- */

/* Adds a name to those that are there; an error where it is one of them. */
static base_status add_name(json_t *names, const char *name)
{
    if (json_object_get(names, name) != NULL)
        return base_fail(BASE_ERR_DATA, "'%s' is there twice", name);
    json_object_set_new(names, name, json_true());
    return BASE_OK;
}

static base_status read_scale(const json_t *object, struct data_column *column)
{
    base_status st = BASE_OK;

    TRY(base_json_real(object, "fill", &column->fill));
    TRY(base_json_real(object, "mean", &column->mean));
    TRY(base_json_real(object, "deviation", &column->deviation));
    if (!isfinite(column->fill) || !isfinite(column->mean) || !isfinite(column->deviation) ||
        column->deviation <= 0)
        TRY(base_fail(BASE_ERR_DATA, "\"deviation\" is %g; numbers are divided by it",
                      column->deviation));
out:
    return st;
}

static base_status read_categories(const json_t *object, struct data_column *column)
{
    base_status st = BASE_OK;
    json_t *list = NULL, *names = json_object();
    size_t count;

    TRY(base_json_array(object, "categories", &list));
    count = json_array_size(list);
    if (count < 1 || count > DATA_MAX_CATEGORIES)
        TRY(base_fail(BASE_ERR_DATA, "\"categories\" has %zu entries, 1 to %d expected", count,
                      DATA_MAX_CATEGORIES));
    column->categories = base_calloc(count, sizeof *column->categories);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (name == NULL)
            TRY(base_fail(BASE_ERR_DATA, "entry %zu of \"categories\" is not a string", i));
        TRY(base_prefix(add_name(names, name), "\"categories\""));
        column->categories[column->category_count++] = base_strdup(name);
    }
out:
    json_decref(names);
    return st;
}

static base_status read_kind(const json_t *object, struct data_column *column)
{
    base_status st = BASE_OK;
    const char *name = NULL, *kind = NULL;

    TRY(base_json_string(object, "name", &name));
    column->name = base_strdup(name);
    TRY(base_prefix(base_json_string(object, "kind", &kind), "column '%s'", name));
    column->kind = strcmp(kind, "number") == 0 ? DATA_NUMBER : DATA_CATEGORY;
    if (column->kind == DATA_NUMBER)
        TRY(base_prefix(read_scale(object, column), "column '%s'", name));
    else if (strcmp(kind, "category") != 0)
        TRY(base_fail(BASE_ERR_DATA, "column '%s': \"kind\" is '%s', number or category expected",
                      name, kind));
out:
    return st;
}

static base_status read_target(const json_t *object, char *const *labels, int classes,
                               struct data_column *target)
{
    base_status st = BASE_OK;
    json_t *column = NULL;

    TRY(base_json_object(object, "target", &column));
    TRY(read_kind(column, target));
    if (target->kind == DATA_NUMBER && classes != 1)
        TRY(base_fail(BASE_ERR_DATA, "the target is a number, but there are %d classes", classes));
    if (target->kind == DATA_NUMBER)
        goto out;
    if (classes < 2)
        TRY(base_fail(BASE_ERR_DATA, "the target is a category, but there is 1 class"));
    target->categories = base_calloc((size_t)classes, sizeof *target->categories);
    for (int i = 0; i < classes; i++)
        target->categories[target->category_count++] = base_strdup(labels[i]);
out:
    return st;
}

base_status model_table_from_json(const json_t *object, char *const *labels, int classes,
                                  struct data_table *table)
{
    base_status st = BASE_OK;
    json_t *columns = NULL, *names = json_object();
    size_t count;

    *table = (struct data_table){0};
    if (!json_is_object(object))
        TRY(base_fail(BASE_ERR_DATA, "is not an object"));
    TRY(read_target(object, labels, classes, &table->target));
    TRY(add_name(names, table->target.name));
    TRY(base_json_array(object, "columns", &columns));
    count = json_array_size(columns);
    if (count < 1 || count > DATA_MAX_COLUMNS)
        TRY(base_fail(BASE_ERR_DATA, "\"columns\" has %zu entries, 1 to %d expected", count,
                      DATA_MAX_COLUMNS));
    table->columns = base_calloc(count, sizeof *table->columns);
    for (size_t i = 0; i < count; i++) {
        const json_t *column = json_array_get(columns, i);
        struct data_column *to = &table->columns[table->column_count++];

        TRY(base_prefix(read_kind(column, to), "entry %zu of \"columns\"", i));
        TRY(base_prefix(add_name(names, to->name), "entry %zu of \"columns\"", i));
        if (to->kind == DATA_CATEGORY)
            TRY(base_prefix(read_categories(column, to), "column '%s'", to->name));
    }
    TRY(data_table_count(table));
out:
    json_decref(names);
    return st;
}
